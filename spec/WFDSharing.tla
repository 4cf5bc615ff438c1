----------------------------- MODULE WFDSharing -----------------------------
(* WFD with shared slots: when it is AR with the same slots.                *)
EXTENDS WFD, Sharing

sharing == <<vars, shared, twin>>
SharingStep == (Step /\ SharingTick(Moving)) \/ (Done /\ UNCHANGED sharing)
SharingSpec == Init /\ SharingStart /\ [][SharingStep]_sharing

-----------------------------------------------------------------------------
SHR05_FreshReads == Running => SharedFreshReads(Moving)

\* The draft depth is at least the distance from any recurrence to the last of its slot.
Suffices == d = T \/ \A r \in Recurrences : Deepest(Slot(r)) - r <= d
SHR08_Sufficient == Suffices => out = twin
\* The first recurrence is the one that asks for most if slots are taken in turn.
SHR08_InTurn ==
  \A s \in 1..T : (\A r \in Recurrences : Slot(r) = r % s) => (Suffices <=> d >= s * ((T - 1) \div s))
=============================================================================

----------------------------- MODULE DtVSharing -----------------------------
(* DtV with shared slots: when it is AR with the same slots.                *)
EXTENDS DtV, Sharing

sharing == <<all, shared, twin>>
SharingStep == (Step /\ SharingTick(Moving)) \/ (Done /\ UNCHANGED sharing)
SharingSpec == Init /\ SharingStart /\ [][SharingStep]_sharing

-----------------------------------------------------------------------------
SHR05_FreshReads == Running => SharedFreshReads(Moving)

\* No recurrence of the verification shares a slot with any other one.
Suffices == d = T \/ \A r \in d..(T - 1) : \A q \in Recurrences : Slot(q) = Slot(r) => q = r
SHR09_Sufficient == Suffices => out = twin
SHR09_InTurn ==
  \A s \in 1..T : (\A r \in Recurrences : Slot(r) = r % s) => (Suffices <=> s >= T \/ d = T)
=============================================================================

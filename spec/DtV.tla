--------------------------------- MODULE DtV ---------------------------------
(***************************************************************************)
(* Draft then verify.  A round of K drafts has two phases: K + 1 sources   *)
(* climb to depth d one after the other, each alone, and all but the last  *)
(* are read out there; then all of them go on from d to T together.        *)
(*                                                                         *)
(*   depth                                                                 *)
(*     T   # # #     read out together: VERIFY, oldest first               *)
(*         . . .     one call for all lanes                                *)
(*     d   # # .     DRAFT: each read out starts the next one              *)
(*     0   . . .     one call for each lane                                *)
(*         position                                                        *)
(***************************************************************************)
EXTENDS Schedule

VARIABLE base    \* ticks before this round; a record, as those of Schedule
all == <<vars, base>>

K == IF d = T THEN 0 ELSE Min(gamma, End - Frontier - 1)            \* DTV-03

\* The call: the youngest lane alone until it is at d, then all.  DTV-04, DTV-05
Drafting == Last(lanes).depth < d
Moving   == IF Drafting THEN {Len(lanes)} ELSE DOMAIN lanes
Moved    == [i \in DOMAIN lanes |-> IF i \in Moving THEN [lanes[i] EXCEPT !.depth = @ + 1]
                                                    ELSE lanes[i]]

\* The readouts: all lanes at T; in the draft phase all but the last source at d.
VerifyDue == Moved[1].depth = T
DraftDue  == Drafting /\ Last(Moved).depth = d /\ d < T /\ Len(lanes) < K + 1
Due       == IF VerifyDue THEN DOMAIN lanes ELSE IF DraftDue THEN {Len(lanes)} ELSE {}

-----------------------------------------------------------------------------
(* One action for everything that a tick can be.                           *)

Tick == Running /\ ticks' = ticks + 1 /\ UNCHANGED par

NothingVerified ==
  /\ Tick /\ ~VerifyDue
  /\ flushed' = 0 /\ UNCHANGED <<out, ar, reason, accepted, rejected, verdict, base>>
  /\ Remember(Moving, Due, Positions(lanes))
Climb    == NothingVerified /\ Drafting /\ ~DraftDue /\ lanes' = Moved
Draft    == /\ NothingVerified /\ DraftDue
            /\ \E g \in Tokens : lanes' = Append(Moved, NewLane(Last(Moved).position + 1, g))
Together == NothingVerified /\ ~Drafting /\ lanes' = Moved

\* The round's outcome: the tokens v of the oldest lanes are committed; all but
\* the last of them were drafted right and ended nothing.  DTV-06
Behind(n)      == SubSeq(Moved, n + 1, Len(Moved))
IsRight(n, y)  == n < Len(Moved) /\ Moved[n + 1].token = y
IsWrong(n, y)  == n < Len(Moved) /\ Moved[n + 1].token # y
Outcome(n, v) ==
  /\ Tick /\ VerifyDue
  /\ \A k \in 1..(n - 1) : IsRight(k, v[k]) /\ Reason(Frontier + k, v[k]) = "none"
  /\ Commit(v, Moving, Due)
  /\ reason' = Reason(Frontier + n, v[n])
  /\ Remember(Moving, Due, {})
  /\ base' = ticks'
NextRound(p, y) == lanes' = <<NewLane(p, y)>>

Reject == \E n \in DOMAIN lanes : \E v \in [1..n -> Tokens] :
  /\ Outcome(n, v) /\ reason' = "none" /\ IsWrong(n, v[n])
  /\ NextRound(Frontier + n - 1, v[n])
  /\ accepted' = accepted + n - 1 /\ rejected' = rejected + 1
  /\ verdict' = "reject" /\ flushed' = Len(Behind(n))

\* All drafts were right: the last source commits one more token, the bonus.
Bonus == \E v \in [DOMAIN lanes -> Tokens] :
  LET n == Len(lanes) IN
  /\ Outcome(n, v) /\ reason' = "none"
  /\ NextRound(Frontier + n - 1, v[n])
  /\ accepted' = accepted + n - 1 /\ UNCHANGED rejected
  /\ verdict' = "none" /\ flushed' = 0

Finish == \E n \in DOMAIN lanes : \E v \in [1..n -> Tokens] :
  /\ Outcome(n, v) /\ reason' # "none"
  /\ lanes' = <<>>
  /\ verdict' = IF IsRight(n, v[n]) THEN "accept" ELSE IF IsWrong(n, v[n]) THEN "reject" ELSE "none"
  /\ accepted' = accepted + n - 1 + (IF IsRight(n, v[n]) THEN 1 ELSE 0)
  /\ rejected' = rejected + (IF IsWrong(n, v[n]) THEN 1 ELSE 0)
  /\ flushed' = IF IsWrong(n, v[n]) THEN Len(Behind(n)) ELSE 0

Init == Start /\ base = 0
Step == Climb \/ Draft \/ Together \/ Reject \/ Bonus \/ Finish
Done == ~Running /\ UNCHANGED all
Next == Step \/ Done
Spec == Init /\ [][Next]_all /\ WF_all(Step)

-----------------------------------------------------------------------------
(* What holds at every moment.                                             *)

KV03_FreshReads == Running => FreshReads(Moving)
KV07_CodaReads  == Running => CodaReads(Due)

DTV03_Sources == Len(lanes) <= K + 1
\* Drafting: all but the youngest wait at d.  Verifying: K + 1 lanes side by side.
DTV04_Phases ==
  Running => IF Drafting THEN \A i \in 1..(Len(lanes) - 1) : lanes[i].depth = d
             ELSE Len(lanes) = K + 1 /\ \A i \in DOMAIN lanes : lanes[i].depth = Last(lanes).depth
DTV07_Identity == Identity
\* The ticks of the running round, at every moment.
DTV08_Round == Running => ticks = base + (Len(lanes) - 1) * d + Last(lanes).depth
DTV09_Bound == Running => ticks - base < gamma * d + T

(* What every step respects.                                               *)
\* The ticks of all rounds: each costs K * d + T, with the K of its beginning.
DTV08_Ticks == [][out' # out => ticks' = base + K * d + T /\ base' = ticks']_all
DTV05_Advance ==
  [][Running /\ out' = out =>
       /\ SubSeq(lanes', 1, Len(lanes)) = Moved
       /\ Len(lanes') > Len(lanes) => Len(lanes') = Len(lanes) + 1 /\ Last(lanes').depth = 0]_all
DTV06_Outcome ==
  [][out' # out =>
       /\ flushed' <= K /\ rejected' - rejected \in {0, 1}
       /\ Len(out') - Len(out) <= K + 1
       /\ reason' = "none" => Len(out') - Len(out) = accepted' - accepted + 1]_all
\* A tick commits, or the round goes on by one tick.
DTV09_Progress == [][Running => out' # out \/ (base' = base /\ ticks' = ticks + 1)]_all
COST03_Judged == [][Running => Counted(Moved)]_all
\* The head is asked about the committed text, and in a run about each text once only: so
\* a free answer every time is a free choice of a function of the text.  WFD verifies
\* nothing but its oldest lane, where this is plain.
SMP12_Asked ==
  [][\A k \in 1..(Len(out') - Len(out)) : Text(k) = SubSeq(out', 1, Len(out) + k - 1)]_all
NOT01_NeverFalls == FrontierNeverFalls

Happened == Events(Moving, Moved)
=============================================================================

--------------------------------- MODULE WFD ---------------------------------
(***************************************************************************)
(* WaveFront Decoding.  The lanes in flight form a diagonal, oldest and    *)
(* deepest first; every tick takes all of them one recurrence further.     *)
(*                                                                         *)
(*   depth                                                                 *)
(*     T   #         the oldest reaches T: its readout VERIFIES            *)
(*         . #                                                             *)
(*     d   . . #     the youngest reaches d: its readout DRAFTS            *)
(*     0   . . . #   the drafted token starts here                         *)
(*         position                                                        *)
(***************************************************************************)
EXTENDS Schedule

W == (T + d - 1) \div d                              \* ceiling of T / d, WFD-08

\* The call: every lane climbs by one.  WFD-03
Moving == DOMAIN lanes
Moved  == [i \in DOMAIN lanes |-> [lanes[i] EXCEPT !.depth = @ + 1]]
Behind == Tail(Moved)

\* The readouts: the oldest at T, the youngest at d.  WFD-04
VerifyDue == Moved[1].depth = T
DraftDue  == Last(Moved).depth = d /\ d < T /\ MayInject(Last(Moved).position + 1)
Due       == {i \in Moving : (i = 1 /\ VerifyDue) \/ (i = Len(lanes) /\ DraftDue)}

-----------------------------------------------------------------------------
(* One action for everything that a tick can be.                           *)

Tick == Running /\ ticks' = ticks + 1 /\ UNCHANGED par

\* The lanes f go on.  If a draft is due, any token may be drafted and starts a lane.
GoOn(f)         == ~DraftDue /\ lanes' = f /\ Remember(Moving, Due, Positions(f))
GoOnAndDraft(f) == /\ DraftDue
                   /\ \E g \in Tokens : lanes' = Append(f, NewLane(Last(Moved).position + 1, g))
                   /\ Remember(Moving, Due, Positions(f))

NothingVerified ==
  /\ Tick /\ ~VerifyDue
  /\ flushed' = 0 /\ UNCHANGED <<out, ar, reason, accepted, rejected, verdict>>
Climb         == NothingVerified /\ GoOn(Moved)
ClimbAndDraft == NothingVerified /\ GoOnAndDraft(Moved)

\* The oldest lane's token y is committed and the lane retires.  SMP-12
Verified(y) ==
  /\ Tick /\ VerifyDue
  /\ Commit(<<y>>, Moving, Due)
  /\ reason' = Reason(Frontier + 1, y)

IsRight(y) == Behind # <<>> /\ Behind[1].token = y
IsWrong(y) == Behind # <<>> /\ Behind[1].token # y

Accepted(y) ==
  /\ Verified(y) /\ reason' = "none" /\ IsRight(y)
  /\ accepted' = accepted + 1 /\ verdict' = "accept" /\ flushed' = 0 /\ UNCHANGED rejected
Accept         == \E y \in Tokens : Accepted(y) /\ GoOn(Behind)
AcceptAndDraft == \E y \in Tokens : Accepted(y) /\ GoOnAndDraft(Behind)

\* A wrong draft takes every lane behind it along.  SMP-13
Reject == \E y \in Tokens :
  /\ Verified(y) /\ reason' = "none" /\ IsWrong(y)
  /\ lanes' = <<NewLane(Frontier, y)>>
  /\ Remember(Moving, Due, {})
  /\ rejected' = rejected + 1 /\ verdict' = "reject" /\ flushed' = Len(Behind)
  /\ UNCHANGED accepted

\* No draft was in flight: this is all there is if d = T.  WFD-06
Restart == \E y \in Tokens :
  /\ Verified(y) /\ reason' = "none" /\ Behind = <<>>
  /\ lanes' = <<NewLane(Frontier, y)>>
  /\ Remember(Moving, Due, {})
  /\ verdict' = "none" /\ flushed' = 0 /\ UNCHANGED <<accepted, rejected>>

\* The end: a stop id, the budget or the context.  A draft is judged all the same.
Finish == \E y \in Tokens :
  /\ Verified(y) /\ reason' # "none"
  /\ lanes' = <<>>
  /\ Remember(Moving, Due, {})
  /\ verdict' = IF IsRight(y) THEN "accept" ELSE IF IsWrong(y) THEN "reject" ELSE "none"
  /\ accepted' = accepted + (IF IsRight(y) THEN 1 ELSE 0)
  /\ rejected' = rejected + (IF IsWrong(y) THEN 1 ELSE 0)
  /\ flushed' = IF IsWrong(y) THEN Len(Behind) ELSE 0

Init == Start
Step == Climb \/ ClimbAndDraft \/ Accept \/ AcceptAndDraft \/ Reject \/ Restart \/ Finish
Done == ~Running /\ UNCHANGED vars
Next == Step \/ Done
Spec == Init /\ [][Next]_vars /\ WF_vars(Step)

-----------------------------------------------------------------------------
(* What holds at every moment.                                             *)

KV03_FreshReads == Running => FreshReads(Moving)
KV07_CodaReads  == Running => CodaReads(Due)

WFD07_Spacing ==
  /\ \A i \in 1..(Len(lanes) - 1) : lanes[i].depth = lanes[i + 1].depth + d
  /\ Running => Last(lanes).depth < d \/ ~MayInject(Last(lanes).position + 1)
WFD08_Width   == Len(lanes) <= W
WFD09_Flush   == flushed <= W - 1
WFD11_Identity == Identity

\* The tick count at every moment; N tokens came after the first.
N == Len(out) - 1
Decisive == accepted - (IF verdict = "accept" THEN 1 ELSE 0)   \* all accepted but the latest
WFD12_Ticks ==
  /\ Running => ticks = accepted * d + (N - accepted) * T + lanes[1].depth
  /\ ~Running /\ N >= 1 => ticks = T + Decisive * d + (N - 1 - Decisive) * T
  /\ N <= 0 /\ ~Running => ticks = 0
WFD12_Judged ==
  IF d = T \/ N < 1 THEN accepted + rejected = 0
  ELSE accepted + rejected = IF Running THEN N ELSE Min(N, End - P - 2)
WFD10_Bound == M > 0 => ticks <= (End - P - 1) * T

(* What every step respects.                                               *)
\* A lane that stays climbs by exactly one; a new lane starts at 0 and last.
WFD03_Advance ==
  [][\A j \in DOMAIN lanes' :
       LET old == {i \in DOMAIN lanes : lanes[i].position = lanes'[j].position}
       IN IF old = {} \/ (flushed' > 0) THEN lanes'[j].depth = 0 /\ j = Len(lanes')
          ELSE \A i \in old : lanes'[j] = Moved[i]]_vars
\* A commit every d or T ticks, as the verdict says, and in between the oldest climbs.
WFD10_Progress ==
  [][Running => IF out' = out THEN lanes'[1].depth = lanes[1].depth + 1
                ELSE /\ Len(out') = Len(out) + 1 /\ VerifyDue
                     /\ reason' = "none" =>
                          lanes'[1].depth = IF verdict' = "accept" THEN T - d ELSE 0]_vars
COST03_Judged == [][Running => Counted(Moved)]_vars
NOT01_NeverFalls == FrontierNeverFalls

Happened == Events(Moving, Moved)
=============================================================================

------------------------------ MODULE Schedule ------------------------------
(***************************************************************************)
(* What WFD and DtV share, as `reference/schedule.py` does: the state, the *)
(* stop rule, who wrote which KV cell, and the properties that both must   *)
(* have.  `WFD` and `DtV` add which lanes move and what a readout starts.  *)
(*                                                                         *)
(* One step is one tick: one recurrent call, the readouts behind it, and   *)
(* what they mean.  Names of properties begin with the clause they state.  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANT Cases   \* the parameters to be tried: a set of records, see below

VARIABLES
  par,       \* the parameters of this run: chosen at the start, never changed
  \* The state of reference/schedule.py.
  out,       \* committed tokens, the first one is at position P
  lanes,     \* lanes in flight, oldest first: [position, token, depth]
  ticks,     \* recurrent calls so far
  reason,    \* "none" while decoding goes on, else why it ended
  \* A record of the run, for the properties alone: no action looks at it.
  ar,        \* what AR commits on the same prompt
  kv,        \* kv[p][r]: the tokens that cell (r, p) was computed from
  coda,      \* coda[p]: the depth of the readout that wrote it, and its tokens
  accepted,  \* drafts judged right so far
  rejected,  \* drafts judged wrong so far
  verdict,   \* on the latest committed token: "accept", "reject" or "none"
  flushed    \* lanes dropped by a flush in the latest tick

vars == <<par, out, lanes, ticks, reason, ar, kv, coda, accepted, rejected, verdict, flushed>>

T      == par.T        \* recurrence depth
d      == par.d        \* draft depth
gamma  == par.gamma    \* draft length of DtV; WFD ignores it
P      == par.P        \* prompt length
M      == par.M        \* token budget
X      == par.X        \* context length
Stops  == par.stops    \* stop ids
Tokens == par.tokens   \* the vocabulary: two tokens are enough to be right or wrong

ASSUME \A c \in Cases : /\ c.d \in 1..c.T /\ c.gamma >= 1
                        /\ c.P >= 1 /\ c.M >= 0 /\ c.X >= c.P

Min(a, b) == IF a < b THEN a ELSE b
Last(s)   == s[Len(s)]

-----------------------------------------------------------------------------
(* Limits.                                                                 *)

End      == Min(P + M, X + 1)                                     \* NOT-01
Frontier == P + Len(out)
Running  == reason = "none"

\* Why decoding ends when `token` has been committed just below `frontier`. SMP-14
Reason(frontier, token) ==
  IF token \in Stops THEN "eos"
  ELSE IF frontier < End THEN "none"
  ELSE IF P + M <= X + 1 THEN "length" ELSE "context"

MayInject(p) == p + 1 < End                                       \* SMP-15
NewLane(p, t) == [position |-> p, token |-> t, depth |-> 0]
Positions(f) == {f[i].position : i \in DOMAIN f}

-----------------------------------------------------------------------------
(* Who wrote which cell.  A cell holds the tokens, from position P on, that *)
(* it was computed from.  `None` is a cell that the present incarnation of  *)
(* its position has not written: whatever is in there is stale.  `Garbage`  *)
(* is a cell whose writer has read something that was not meant for it.     *)

None    == <<-1>>
Garbage == <<-2>>
NoEntry == [depth |-> 0, text |-> None]
Cells   == 0..(End - 2)                                           \* KV-02

\* What lane i is computed from, and what of it position p sees.
Text(i)      == out \o [j \in 1..(i - 1) |-> lanes[j + 1].token]
Own(text, p) == SubSeq(text, 1, p - P + 1)

\* In a tick that advances the lanes `moving`, lane i reads nothing but what
\* belongs to its own text: in its recurrence r every earlier position, after
\* the writes of this very call; and its state comes from such a recurrence.
RECURSIVE ReadsFresh(_, _)
ReadsFresh(i, moving) ==
  LET r == lanes[i].depth
      text == Text(i)
      Writers(p) == {j \in moving : j < i /\ lanes[j].position = p /\ lanes[j].depth = r}
  IN /\ r > 0 => kv[lanes[i].position][r - 1] = text
     /\ \A p \in 0..(lanes[i].position - 1) :
          IF Writers(p) = {} THEN kv[p][r] = Own(text, p)
          ELSE \A j \in Writers(p) : Text(j) = Own(text, p) /\ ReadsFresh(j, moving)

\* The cells after the call, and the coda entries after the readout of lanes `due`.
Written(moving) ==
  [p \in Cells |-> [r \in 0..(T - 1) |->
    LET writers == {i \in moving : lanes[i].position = p /\ lanes[i].depth = r}
    IN IF writers = {} THEN kv[p][r]
       ELSE LET i == CHOOSE j \in writers : TRUE
            IN IF ReadsFresh(i, moving) THEN Text(i) ELSE Garbage]]
ReadOut(due) ==
  [p \in Cells |->
    LET readers == {i \in due : lanes[i].position = p}
    IN IF readers = {} THEN coda[p]
       ELSE LET i == CHOOSE j \in readers : TRUE
            IN [depth |-> lanes[i].depth + 1, text |-> Text(i)]]

\* Ends the incarnation of every position that is neither final nor in `stay`.
Remember(moving, due, stay) ==
  LET cells == Written(moving)
      entries == ReadOut(due)
      Counts(p) == p < Frontier' - 1 \/ p \in stay
  IN /\ kv' = [p \in Cells |-> IF Counts(p) THEN cells[p] ELSE [r \in 0..(T - 1) |-> None]]
     /\ coda' = [p \in Cells |-> IF Counts(p) THEN entries[p] ELSE NoEntry]

\* Lane i was computed from fresh cells and, behind the call's own writes, from final
\* coda entries: the full-depth head is asked about the lane's text.
IsSound(i, cells, entries) ==
  /\ cells[lanes[i].position][T - 1] = Text(i)
  /\ \A p \in 0..lanes[i].position : entries[p] = [depth |-> T, text |-> Own(Text(i), p)]

\* The full-depth readouts of the oldest lanes give the tokens v, and these are
\* committed.  The head is a function of the text: what it says of AR's text is what
\* AR says.  A lane that is not sound, or has another text, tells nothing of AR.
Commit(v, moving, due) ==
  LET cells == Written(moving)
      entries == ReadOut(due)
      IsTrue(i) == Text(i) = ar \o SubSeq(v, 1, i - 1) /\ IsSound(i, cells, entries)
  IN /\ out' = out \o v
     /\ IF \A i \in 1..Len(v) : IsTrue(i) THEN ar' = ar \o v
        ELSE \E y \in [1..Len(v) -> Tokens] : ar' = ar \o y

-----------------------------------------------------------------------------
(* The start, alike for all decoders: prefill has computed the prompt and   *)
(* says the first token.  SMP-10, SMP-11                                    *)

Start ==
  /\ par \in Cases
  /\ ticks = 0 /\ accepted = 0 /\ rejected = 0 /\ verdict = "none" /\ flushed = 0
  /\ kv = [p \in Cells |-> [r \in 0..(T - 1) |-> IF p < P THEN <<>> ELSE None]]
  /\ coda = [p \in Cells |-> IF p < P THEN [depth |-> T, text |-> <<>>] ELSE NoEntry]
  /\ IF M = 0
     THEN out = <<>> /\ lanes = <<>> /\ reason = "length"
     ELSE \E y \in Tokens :
            /\ out = <<y>>
            /\ reason = Reason(P + 1, y)
            /\ lanes = IF reason = "none" THEN <<NewLane(P, y)>> ELSE <<>>
  /\ ar = out

-----------------------------------------------------------------------------
(* The events of a step (NOT-03), read off the states before and after it.  *)
(* `moved` are the lanes as they are after the call, before any verdict.    *)

RECURSIVE Verdicts(_, _)
Verdicts(moved, k) ==
  IF k > Len(out') - Len(out) THEN <<>> ELSE
  LET p == Frontier + k - 1
      y == out'[Len(out) + k]
      behind == SubSeq(moved, k + 1, Len(moved))
  IN <<<<"commit", ticks', p, y>>>>
     \o (IF behind = <<>> THEN <<>>
         ELSE IF behind[1].token = y THEN <<<<"accept", ticks', p>>>>
         ELSE <<<<"reject", ticks', p, behind[1].token, y>>,
                <<"flush", ticks', [i \in DOMAIN behind |-> behind[i].position]>>>>)
     \o Verdicts(moved, k + 1)

Tuple(lane) == <<lane.position, lane.token, lane.depth>>
Tuples(f)   == [i \in DOMAIN f |-> Tuple(f[i])]

Events(moving, moved) ==
  LET n == Len(out') - Len(out)
      rows == SelectSeq([i \in DOMAIN moved |-> [at |-> i, lane |-> moved[i]]],
                        LAMBDA row : row.at \in moving)
      left == IF verdict' = "accept" THEN SubSeq(moved, n + 1, Len(moved)) ELSE <<>>
      fresh == IF lanes' = <<>> THEN {} ELSE {Last(lanes')}
  IN <<<<"advance", ticks', [i \in DOMAIN rows |-> Tuple(rows[i].lane)]>>>>
     \o Verdicts(moved, 1)
     \o (IF reason' # "none"
         THEN <<<<"finish", ticks', reason', [i \in DOMAIN left |-> left[i].position]>>>>
         ELSE <<>>)
     \o (IF n > 0 /\ lanes' # <<>> /\ verdict' # "accept"
         THEN <<<<"inject", ticks', lanes'[1].position, lanes'[1].token>>>>
         ELSE <<>>)
     \o (IF \E lane \in fresh : lane.position > Last(moved).position /\ Len(lanes') > 1
         THEN <<<<"draft", ticks', Last(moved).position, Last(lanes').token>>,
                <<"inject", ticks', Last(lanes').position, Last(lanes').token>>>>
         ELSE <<>>)

StartEvents ==
  IF M = 0 THEN <<<<"finish", 0, reason, <<>>>>>>
  ELSE <<<<"commit", 0, P, out[1]>>,
         IF Running THEN <<"inject", 0, P, out[1]>> ELSE <<"finish", 0, reason, <<>>>>>>

\* What a state of the code knows of a state here.
View == <<Frontier, Tuples(lanes), ticks, reason>>

-----------------------------------------------------------------------------
(* What holds at every moment, for both decoders.                           *)

\* The frontier stays in its bounds; the oldest lane carries the last final token.
NOT01_Frontier ==
  /\ Frontier <= End
  /\ Running <=> lanes # <<>>
  /\ \A i \in DOMAIN lanes : lanes[i].position = Frontier - 2 + i
  /\ Running => lanes[1].token = Last(out) /\ Frontier < End
\* Said again without `End` and `Reason`, so that an error in those shows.
SMP14_Finish ==
  /\ Len(out) <= M /\ Frontier <= X + 1
  /\ \A i \in 1..(Len(out) - 1) : out[i] \notin Stops
  /\ IF out # <<>> /\ Last(out) \in Stops THEN reason = "eos"
     ELSE IF Len(out) = M THEN reason = "length"
     ELSE reason = IF Frontier = X + 1 THEN "context" ELSE "none"
SMP15_Injection == \A i \in DOMAIN lanes : MayInject(lanes[i].position)
KV02_Cells == \A i \in DOMAIN lanes : lanes[i].position \in Cells
InRange    == \A i \in DOMAIN lanes : lanes[i].depth \in 0..(T - 1)

\* Every cell is written once by each incarnation, in increasing order, and never
\* at a position that is neither final nor in flight.
KV04_WriteOrder ==
  /\ \A p \in Cells : \A r \in 0..(T - 1) :
       LET climbing == {i \in DOMAIN lanes : lanes[i].position = p}
       IN (kv[p][r] # None) <=> \/ p < Frontier - 1
                                \/ \E i \in climbing : r < lanes[i].depth
  /\ \A i \in DOMAIN lanes : coda[lanes[i].position].depth \in {0, d}
\* Finished positions hold what AR holds, and their coda entries are final.
KV06_Finished ==
  \A p \in Cells : p < Frontier - 1 =>
    /\ \A r \in 0..(T - 1) : kv[p][r] = Own(ar, p)
    /\ coda[p] = [depth |-> T, text |-> Own(ar, p)]
\* Between ticks all lanes but the youngest have a provisional entry of their own text.
KV08_Provisional ==
  \A i \in DOMAIN lanes :
    coda[lanes[i].position] = IF i = Len(lanes) THEN NoEntry ELSE [depth |-> d, text |-> Text(i)]

\* The same for the tick that comes next: what its rows and readouts will read.
FreshReads(moving) == \A i \in moving : ReadsFresh(i, moving)
CodaReads(due) ==
  LET entries == ReadOut(due) IN
  \A i \in due : \A p \in 0..(lanes[i].position - 1) :
    /\ entries[p].text = Own(Text(i), p)
    /\ lanes[i].depth + 1 = T => entries[p].depth = T                \* KV-07
    /\ entries[p].depth = IF \/ p < Frontier - 1                      \* KV-08
                             \/ \E j \in due : lanes[j].position = p /\ lanes[j].depth + 1 = T
                          THEN T ELSE d

Identity == out = ar                                       \* DTV-07, WFD-11

(* What every step respects.                                                *)
FrontierNeverFalls == [][Len(out') >= Len(out) /\ SubSeq(out', 1, Len(out)) = out /\ par' = par]_vars
\* Drafts that are judged are counted, and only those.
Counted(moved) ==
  LET n == Len(out') - Len(out)
      judged == Min(n, Len(moved) - 1)
  IN /\ accepted' + rejected' = accepted + rejected + judged
     /\ accepted' - accepted = Cardinality({k \in 1..judged : moved[k + 1].token = out'[Len(out) + k]})
     /\ (rejected' # rejected) <=> flushed' > 0
\* ... and the text is finished.
Terminates == <>(reason # "none")
=============================================================================

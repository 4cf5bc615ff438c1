------------------------------- MODULE Counts -------------------------------
(***************************************************************************)
(* What a run counts, as `reference/counts.py` does: from the events alone *)
(* (COST-05).  The counts are a layer on top of a model, `WFDCounts` and   *)
(* `DtVCounts`: no action looks at them.  The properties hold them against *)
(* the states, which know nothing of events.                               *)
(***************************************************************************)
EXTENDS Schedule

VARIABLES
  counts,   \* the totals so far
  reached   \* the depths of all lanes that have left, summed: read off the lanes, not the events

\* `flushes` and `abandoned` are no counts of the code; the clauses speak of them.
NoCounts ==
  [ticks |-> 0, lane_ticks |-> 0, prelude_calls |-> 0, readout_calls |-> 0, accepted |-> 0,
   rejected |-> 0, flushed |-> 0, committed |-> 0, flushes |-> 0, abandoned |-> 0]

\* Tells what one event adds.
Add(c, event) ==
  CASE event[1] = "advance" -> [c EXCEPT !.ticks = @ + 1, !.lane_ticks = @ + Len(event[3])]
    [] event[1] = "inject"  -> [c EXCEPT !.prelude_calls = @ + 1]
    [] event[1] = "commit"  -> [c EXCEPT !.committed = @ + 1]
    [] event[1] = "accept"  -> [c EXCEPT !.accepted = @ + 1]
    [] event[1] = "reject"  -> [c EXCEPT !.rejected = @ + 1]
    [] event[1] = "flush"   -> [c EXCEPT !.flushed = @ + Len(event[3]), !.flushes = @ + 1]
    [] event[1] = "finish"  -> [c EXCEPT !.abandoned = @ + Len(event[4])]
    [] OTHER                -> c
RECURSIVE AddAll(_, _)
AddAll(c, events) == IF events = <<>> THEN c ELSE AddAll(Add(c, Head(events)), Tail(events))

\* All readouts of a tick are one call.  COST-02
IsReadOut(events) == \E i \in DOMAIN events : events[i][1] \in {"commit", "draft"}
AddTick(c, events) ==
  [AddAll(c, events) EXCEPT !.readout_calls = @ + IF IsReadOut(events) THEN 1 ELSE 0]

RECURSIVE Depths(_)
Depths(f) == IF f = <<>> THEN 0 ELSE Head(f).depth + Depths(Tail(f))
Left(moved) == SelectSeq(moved, LAMBDA lane : \A i \in DOMAIN lanes' : lanes'[i] # lane)

CountStart == counts = AddAll(NoCounts, StartEvents) /\ reached = 0
CountTick(events, moved) ==
  /\ counts' = AddTick(counts, events)
  /\ reached' = reached + Depths(Left(moved))

-----------------------------------------------------------------------------
(* What holds at every moment, for both decoders.                           *)

Retired == IF out = <<>> THEN 0 ELSE Len(out) - 1                 \* N

\* Every row took one lane one recurrence further.
COST01_Rows ==
  /\ counts.ticks = ticks
  /\ counts.lane_ticks = reached + Depths(lanes)
  /\ reached >= Retired * T
  /\ counts.flushed + counts.abandoned = 0 => reached = Retired * T
\* The events tell of the verdicts that the model gave, of no more than one for each commit.
COST03_Verdicts ==
  /\ counts.accepted = accepted /\ counts.rejected = rejected
  /\ accepted + rejected <= Retired
COST04_Flushes == counts.flushes = counts.rejected /\ counts.rejected <= counts.flushed
\* No lane is lost, at no moment; at the end none is in flight.
COST05_Conservation ==
  /\ counts.committed = Len(out)
  /\ counts.prelude_calls = Retired + counts.flushed + counts.abandoned + Len(lanes)
  /\ Running => counts.abandoned = 0
  /\ out = <<>> => counts = NoCounts
\* With d = T both decoders count as AR does.
AR02_Counts ==
  d = T =>
    /\ counts.lane_ticks = counts.ticks
    /\ counts.ticks = Retired * T + Depths(lanes)
    /\ counts.readout_calls = Retired /\ counts.prelude_calls = Retired + Len(lanes)
    /\ counts.accepted + counts.rejected + counts.flushed + counts.abandoned = 0

\* For the tick that comes next: it is a readout call if and only if a lane is read out.
ReadOutCounted(due) ==
  counts'.readout_calls = counts.readout_calls + (IF due = {} THEN 0 ELSE 1)
=============================================================================

------------------------------ MODULE WFDCounts ------------------------------
(* What a run of WFD counts, and how its counts hang together.              *)
EXTENDS WFD, Counts

counted == <<vars, counts, reached>>
CountingStep == (Step /\ CountTick(Happened, Moved)) \/ (Done /\ UNCHANGED counted)
CountingSpec == Init /\ CountStart /\ [][CountingStep]_counted

-----------------------------------------------------------------------------
COST02_Readouts == [][Running => ReadOutCounted(Due)]_counted

COST01_Width == counts.ticks <= counts.lane_ticks /\ counts.lane_ticks <= W * counts.ticks
COST04_Bound == counts.flushed <= counts.rejected * (W - 1)

\* As long as the end is out of sight of every wave, each flush drops W - 1 lanes, at the
\* depths T - d, T - 2d, ...  The last commit was made one position below the frontier.
COST04_FarFromEnd ==
  Running /\ Frontier - 1 + W <= End =>
    /\ counts.flushed = counts.rejected * (W - 1)
    /\ reached = Retired * T + counts.rejected * ((W - 1) * T - d * ((W * (W - 1)) \div 2))

\* A lane is started by prefill, by a rejection that does not end the run, and by every
\* draft that is kept.  A draft comes alone, or with a verification: never if d does not
\* divide T; otherwise only the drafts that fill an empty wave come alone.
Restarts == counts.rejected - (IF ~Running /\ verdict = "reject" THEN 1 ELSE 0)
COST02_Calls ==
  d < T /\ counts.prelude_calls > 0 =>
    LET drafts == counts.prelude_calls - 1 - Restarts
        alone  == counts.readout_calls - Retired
    IN /\ 0 <= alone /\ alone <= drafts
       /\ IF T % d # 0 THEN alone = drafts ELSE alone <= (W - 1) * (1 + Restarts)

\* The closed form of a run that reached the end.
COST06_Ticks ==
  ~Running /\ Frontier = End /\ Retired >= 1 /\ d < T =>
    counts.ticks = T + counts.accepted * d + counts.rejected * T
=============================================================================

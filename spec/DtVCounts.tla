------------------------------ MODULE DtVCounts ------------------------------
(* What a run of DtV counts, and how its counts hang together.              *)
EXTENDS DtV, Counts

counted == <<all, counts, reached>>
CountingStep == (Step /\ CountTick(Happened, Moved)) \/ (Done /\ UNCHANGED counted)
CountingSpec == Init /\ CountStart /\ [][CountingStep]_counted

-----------------------------------------------------------------------------
COST02_Readouts == [][Running => ReadOutCounted(Due)]_counted

COST04_Bound == counts.flushed <= counts.rejected * gamma

\* Rejected and abandoned lanes have gone all the way to T like all others.
COST01_FullDepth == reached = T * (counts.prelude_calls - Len(lanes))
\* Prefill starts the first lane; every readout call starts one more, but the last of all.
COST02_Calls == counts.prelude_calls = counts.readout_calls + (IF Running THEN 1 ELSE 0)
=============================================================================

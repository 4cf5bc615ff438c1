------------------------------ MODULE Sharing ------------------------------
(***************************************************************************)
(* Recurrences that share KV slots, as spec/25-kv-sharing.md says.  It is  *)
(* a layer on top of a model, `WFDSharing` and `DtVSharing`: no action     *)
(* looks at it.  A cell carries the recurrence that last wrote it, and the *)
(* tokens from which it was computed; the cells of the model below it go   *)
(* on as if nothing were shared.  Layers are not modelled: every layer has *)
(* the same slots (SHR-02), and the one shown stands for all.              *)
(***************************************************************************)
EXTENDS Schedule

VARIABLES
  shared,   \* shared[p][c]: what slot c holds at position p
  twin      \* what AR commits under the same sharing

Recurrences == 0..(T - 1)
Slot(r)  == par.slot[r + 1]                                            \* SHR-02
Slots    == {Slot(r) : r \in Recurrences}
\* The last recurrence that writes a slot: what AR finds there at every earlier position.
Deepest(c) == CHOOSE r \in Recurrences : Slot(r) = c /\ \A q \in (r + 1)..(T - 1) : Slot(q) # c

Cell(r, text) == [recurrence |-> r, text |-> text]
Unwritten == Cell(-1, None)
Final(text)  == [c \in Slots |-> Cell(Deepest(c), text)]

\* In a tick that advances the lanes `moving`, lane i finds in every cell it reads what AR
\* would find there, after the writes of this very call; and so did whoever wrote it.  SHR-05, SHR-07
RECURSIVE ReadsAsAR(_, _)
ReadsAsAR(i, moving) ==
  LET r == lanes[i].depth
      c == Slot(r)
      text == Text(i)
      Writers(p) == {j \in moving : j < i /\ lanes[j].position = p /\ Slot(lanes[j].depth) = c}
  IN /\ r > 0 => shared[lanes[i].position][Slot(r - 1)] = Cell(r - 1, text)
     /\ \A p \in 0..(lanes[i].position - 1) :
          IF Writers(p) = {} THEN shared[p][c] = Cell(Deepest(c), Own(text, p))
          ELSE \A j \in Writers(p) :
                 lanes[j].depth = Deepest(c) /\ Text(j) = Own(text, p) /\ ReadsAsAR(j, moving)

\* The cells after the call: the last write wins.
SharedAfter(moving) ==
  [p \in Cells |-> [c \in Slots |->
    LET writers == {i \in moving : lanes[i].position = p /\ Slot(lanes[i].depth) = c}
    IN IF writers = {} THEN shared[p][c]
       ELSE LET i == CHOOSE j \in writers : TRUE
            IN Cell(lanes[i].depth, IF ReadsAsAR(i, moving) THEN Text(i) ELSE Garbage)]]

\* Prefill computes the prompt without sharing, and leaves the deepest of each slot.  SHR-04
SharingStart ==
  /\ shared = [p \in Cells |-> IF p < P THEN Final(<<>>) ELSE [c \in Slots |-> Unwritten]]
  /\ twin = out

\* A verified lane whose last recurrence was AR's is read out as AR's would be.
SharingTick(moving) ==
  LET after == SharedAfter(moving)
      v == SubSeq(out', Len(out) + 1, Len(out'))
      IsTwin(i) == /\ Text(i) = twin \o SubSeq(v, 1, i - 1)
                   /\ after[lanes[i].position][Slot(T - 1)] = Cell(T - 1, Text(i))
      \* The model below knows which positions have ended an incarnation.
      Counts(p) == p < Frontier' - 1 \/ kv'[p][0] # None
  IN /\ shared' = [p \in Cells |-> IF Counts(p) THEN after[p] ELSE [c \in Slots |-> Unwritten]]
     /\ IF \A i \in 1..Len(v) : IsTwin(i) THEN twin' = twin \o v
        ELSE \E y \in [1..Len(v) -> Tokens] : twin' = twin \o y

-----------------------------------------------------------------------------
(* What holds at every moment, for both decoders and all slot maps.         *)

\* The cell that a row reads at an earlier position was written by its present incarnation,
\* at the reader's recurrence or a deeper one; the row's own cell in this very call.
SharedFreshReads(moving) ==
  LET after == SharedAfter(moving) IN
  \A i \in moving :
    LET c == Slot(lanes[i].depth) IN
    /\ after[lanes[i].position][c].recurrence = lanes[i].depth
    /\ \A p \in 0..(lanes[i].position - 1) :
         after[p][c].recurrence >= lanes[i].depth /\ after[p][c].text \in {Own(Text(i), p), Garbage}

\* Every cell of a finished position holds its slot's last recurrence.
SHR07_Finished ==
  \A p \in Cells : p < Frontier - 1 => \A c \in Slots : shared[p][c].recurrence = Deepest(c)

\* A run that has gone on behind no accepted draft is AR's.
SHR10_NothingAccepted == accepted = 0 => out = twin
=============================================================================

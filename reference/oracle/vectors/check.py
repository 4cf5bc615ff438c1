"""Runs answers past the judges of their kinds and adds up what they say."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from reference.errors import ParameterError
from reference.oracle.vectors.answers import Answer, Finding
from reference.oracle.vectors.form import FLAGS, JsonObject, Vector
from reference.oracle.vectors.kinds import KINDS, load
from reference.oracle.verdicts import Verdict, worst


class Outcome(StrEnum):
    """What became of one vector; the first three are the oracle's verdicts."""

    EXACT = "exact"
    """The solution, or something that the specification leaves free."""
    NEAR_TIE = "near_tie"
    """Another token, where rounding may decide (CONF-05)."""
    WRONG = "wrong"
    """Not the solution."""
    MISSING = "missing"
    """Nobody answered, though other vectors of the kind were; counts as wrong."""
    SKIPPED = "skipped"
    """The answer says why there is none; counts as nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorVerdict:
    """What became of one answer."""

    id: str
    """The vector's."""
    outcome: Outcome
    """In a word."""
    reason: str
    """What is wrong, near or skipped; for an exact trace the freedoms that it takes; else empty."""
    clause: str
    """The clause that is broken; empty if none is."""
    flag: str
    """The vector's: what it means to fail it."""

    def __str__(self) -> str:
        """Gives a line; two if the answer is wrong."""
        said = f": {self.reason}" if self.reason else ""
        clause = f" ({self.clause})" if self.clause else ""
        line = f"{self.outcome:<8} {self.id}{said}{clause}"
        return f"{line}\n         {self.flag}: {FLAGS[self.flag]}" if self.outcome is Outcome.WRONG else line


@dataclass(frozen=True, slots=True)
class VectorsVerdict:
    """What became of all answers. Printed, it explains itself."""

    verdict: Verdict
    """WRONG if an answer is wrong or missing; else NEAR_TIE if one is; else EXACT."""
    vectors: tuple[VectorVerdict, ...]
    """In the order of the answers; what is missing comes last."""

    def as_json(self) -> JsonObject:
        """Gives the verdict as an object for machines."""
        return {"verdict": self.verdict, "vectors": [asdict(one) for one in self.vectors]}

    def __str__(self) -> str:
        """Gives a line for every answer, and how many there are of each outcome."""
        numbers = Counter(one.outcome for one in self.vectors)
        total = ", ".join(f"{numbers[outcome]} {outcome}" for outcome in Outcome if numbers[outcome])
        return "\n".join((*map(str, self.vectors), f"{self.verdict}: {total}"))


def check(answers: str | Iterable[Mapping[str, object]], *, kind: str | None = None) -> VectorsVerdict:
    """Judges answers to vectors.

    Args:
        answers: JSON lines, or objects: `id`, and what the vector's kind asks for; or `id` and `skipped`, the reason
            why there is no answer. A vector may be answered several times, by several decoders for instance.
        kind: The kind that is judged; all of its vectors must be answered. None judges every kind that is answered.

    Returns:
        A verdict for every answer and for every vector that should have one.

    Raises:
        ParameterError: If a line is no answer: not JSON, of an unknown vector, or with values of another type.

    Spec: CONF-02 to CONF-07.
    """
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"kind={kind!r} is none of {', '.join(KINDS)} (CONF-07)")
    given = list(_read(answers) if isinstance(answers, str) else _numbered(answers))
    kinds = [kind] if kind else [name for name in KINDS if any(_kind_of(answer) == name for answer in given)]
    known = {vector.id: vector for name in kinds for vector in load(name)}
    judged = [_judged(answer, known) for answer in given if kind is None or _kind_of(answer) == kind]
    if all(one.outcome is Outcome.SKIPPED for one in judged):
        raise ParameterError("nothing to judge: no answer but skipped ones (CONF-07)")
    answered = {one.id for one in judged}
    judged += [_verdict(vector, Outcome.MISSING, "no answer") for vector in known.values() if vector.id not in answered]
    counted = (Verdict.WRONG if one.outcome is Outcome.MISSING else one.outcome for one in judged)
    return VectorsVerdict(worst(Verdict(one) for one in counted if one != Outcome.SKIPPED), tuple(judged))


def _read(text: str) -> Iterator[Answer]:
    numbered = ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
    for number, line in numbered:
        try:
            values = json.loads(line)
        except ValueError as error:
            raise ParameterError(f"line {number} is not JSON: {error} (CONF-07)") from error
        if not isinstance(values, dict):
            raise ParameterError(f"line {number} is not an object (CONF-07)")
        yield Answer(f"line {number}", values)


def _numbered(answers: Iterable[Mapping[str, object]]) -> Iterator[Answer]:
    for number, values in enumerate(answers, start=1):
        yield Answer(f"answer {number}", dict(values))


def _kind_of(answer: Answer) -> str:
    name = answer.text("id")
    if name is None:
        raise answer.wrong("id", "given")
    return name.partition("/")[0]


def _judged(answer: Answer, known: Mapping[str, Vector]) -> VectorVerdict:
    vector = known.get(str(answer.values["id"]))
    if vector is None:
        raise answer.wrong("id", "that of a vector")
    excuse = answer.text("skipped")
    if excuse is not None:
        return _verdict(vector, Outcome.SKIPPED, excuse)
    kind = KINDS[vector.kind]
    names: Sequence[str] = [name for name in answer.values if name != "id"]
    unknown = [name for name in names if name not in kind.answer]
    if unknown or not names:
        raise answer.wrong(", ".join(unknown) or "it", f"an object of id and any of {', '.join(kind.answer)}")
    finding: Finding = kind.judge(vector, answer)
    return _verdict(vector, Outcome(finding.verdict), finding.reason, finding.clause)


def _verdict(vector: Vector, outcome: Outcome, reason: str, clause: str = "") -> VectorVerdict:
    return VectorVerdict(id=vector.id, outcome=outcome, reason=reason, clause=clause, flag=vector.flag)

"""Identity once more, with AR's whole text chosen before the run instead of recorded along it.

The full-depth head is any function of the text. All that matters of it is what it says of the beginnings of its own
text, which is AR's; so that text is chosen at the start, every possible one, and behind anything else the head may say
what it likes.
"""

from typing import Final

import pytest

from spec import tlc
from spec.tlc import Case, Result
from tests.formal.cases import DTV_MUTANTS, MUTABLE, WFD_MUTANTS
from tests.formal.requirements import needs_tlc

pytestmark = needs_tlc

HEAD: Final = """
VARIABLE answer   \\* what AR says, as far as budget and context go
HeadVars == <<%s, answer>>
HeadInit ==
  /\\ Init
  /\\ answer \\in [1..(End - P) -> Tokens]
  /\\ out # <<>> => out[1] = answer[1]
\\* A sound lane is read out behind its text, and the head answers as it was chosen.
HeadStep ==
  /\\ Step /\\ UNCHANGED answer
  /\\ LET cells == Written(Moving)
         entries == ReadOut(Due)
         IsAsked(k) == /\\ Text(k) = SubSeq(answer, 1, Len(Text(k))) /\\ Len(Text(k)) < Len(answer)
                       /\\ IsSound(k, cells, entries)
     IN \\A k \\in 1..(Len(out') - Len(out)) :
          IsAsked(k) => out'[Len(out) + k] = answer[Len(Text(k)) + 1]
HeadSpec == HeadInit /\\ [][HeadStep \\/ (Done /\\ UNCHANGED answer)]_HeadVars
\\* AR goes on to its first stop id, or to the end.
Stopped == {k \\in DOMAIN answer : answer[k] \\in Stops}
Whole   == IF Stopped = {} THEN Len(answer) ELSE CHOOSE k \\in Stopped : \\A j \\in Stopped : k <= j
SaysWhatARSays == out = SubSeq(answer, 1, Len(out)) /\\ (Len(out) = Whole <=> ~Running)
"""

WORLDS: Final = (
    Case(T=2, d=1, gamma=2, M=4, stops=(1,)),
    Case(T=3, d=1, gamma=3, P=2, M=9, X=5),
    Case(T=3, d=2, gamma=1, M=5),
    Case(T=4, d=2, gamma=4, M=5, stops=(0,)),
    Case(T=2, d=2, M=3),
)


def check(module: str, edits: tuple[tuple[str, str], ...] = ()) -> Result:
    """Runs a module against every text that AR may say."""
    return tlc.check(
        module,
        WORLDS,
        specification="HeadSpec",
        extra=HEAD % ("vars" if module == "WFD" else "all"),
        invariants=["SaysWhatARSays"],
        edits=edits,
    )


@pytest.mark.spec("WFD-11", "DTV-07", "SMP-12", "SMP-14")
@pytest.mark.parametrize("module", ["WFD", "DtV"])
def test_whatever_ar_says_is_said(module: str) -> None:
    result = check(module)
    assert result.violated is None, result.log
    assert result.states > 2000


@pytest.mark.parametrize(
    "module, edits",
    [
        ("WFD", WFD_MUTANTS["the draft is committed instead of the verified token"].edits),
        ("WFD", WFD_MUTANTS["a rejected lane is repaired in place"].edits),
        ("WFD", WFD_MUTANTS["a drafted stop id ends the text"].edits),
        ("DtV", DTV_MUTANTS["every draft is accepted"].edits),
        ("DtV", DTV_MUTANTS["rows of one call do not see each other"].edits),
        ("DtV", DTV_MUTANTS["a round runs over a stop id"].edits),
    ],
)
def test_a_wrong_decoder_says_something_else(module: str, edits: tuple[tuple[str, str], ...]) -> None:
    assert check(module, edits).violated == "SaysWhatARSays"


def test_a_decoder_that_goes_on_behind_a_wrong_draft_asks_about_a_text_that_is_not_committed() -> None:
    """The claim by which free answers are as good as a function can fail; alone, so that no other one fails first."""
    edits = DTV_MUTANTS["every draft is accepted"].edits
    assert tlc.check("DtV", MUTABLE, properties=["SMP12_Asked"], edits=edits).violated == "SMP12_Asked"

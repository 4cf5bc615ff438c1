"""Cases 3 and 30: every draft is checked, and what counts as accepted."""

import pytest

from reference.models.scripted import ScriptedModel
from reference.schedule import Commit
from tests.cases.decoders import decode, every_draft_length
from tests.driving import Case, Verdicts
from tests.runs import scripted


def never_right(prefix: tuple[int, ...], depth: int) -> list[float]:
    """Says x + 1 at full depth and x + 2 before."""
    return [float(token == (prefix[-1] + (1 if depth == 4 else 2)) % 8) for token in range(8)]


@pytest.mark.spec("SMP-12", "DTV-06")
@every_draft_length
@pytest.mark.parametrize("draft_depth", [1, 2, 3])
def test_case_3_with_drafts_that_are_always_wrong_none_is_accepted(draft_length: int, draft_depth: int) -> None:
    model = ScriptedModel(table=never_right, vocab_size=8, recurrence_depth=4)
    options = {"max_new_tokens": 10, "draft_depth": draft_depth, "draft_length": draft_length}
    expected = decode("ar", model, [0], max_new_tokens=10).token_ids
    for decoder in ("dtv", "wfd"):
        output = decode(decoder, model, [0], **options)
        assert output.token_ids == expected == [1, 2, 3, 4, 5, 6, 7, 0, 1, 2]
        assert output.counts.accepted == 0
        assert output.counts.rejected == 8  # one for each token after the first, but the last, which is not drafted
        assert output.acceptance_rate == 0


def model_of(*matches: str, stop_after: int | None = None) -> ScriptedModel:
    """Gives the model whose draft of the k-th token after the first is right or not, as listed."""
    right = (False, *(match == "yes" for match in matches))
    table = Verdicts(1, right, stop_after)
    return scripted(Case(table=table, recurrence_depth=4, draft_depth=1, max_new_tokens=len(right)))


@pytest.mark.spec("COST-03", "COST-04", "DTV-06")
def test_case_30_drafts_behind_a_rejection_are_not_judged() -> None:
    model = model_of("yes", "no", "yes", "yes")
    output = decode("dtv", model, [0], draft_length=3, max_new_tokens=5, eos_token_id=2)
    # The round's drafts match yes, no, yes: 2 tokens committed. Then one more round for the last two tokens.
    assert output.counts.accepted == 1 + 1
    assert output.counts.rejected == 1
    assert output.counts.flushed == 2
    assert output.acceptance_rate == pytest.approx(2 / 3)


@pytest.mark.spec("SMP-12", "SMP-14", "COST-03")
@pytest.mark.parametrize("decoder", ["dtv", "wfd"])
def test_case_30_of_five_right_drafts_of_which_the_second_is_an_end_token_two_count(decoder: str) -> None:
    model = model_of(*["yes"] * 8, stop_after=2)
    output = decode(decoder, model, [0], draft_length=5, max_new_tokens=9, eos_token_id=2)
    assert output.token_ids == [0, 0, 2]
    assert output.finish_reason == "eos"
    assert (output.counts.accepted, output.counts.rejected, output.counts.flushed) == (2, 0, 0)
    assert output.counts.committed == 1 + 2


@pytest.mark.spec("COST-05", "DTV-06", "DTV-08")
@every_draft_length
def test_case_30_first_token_and_all_rounds_make_up_the_output(draft_length: int) -> None:
    model = model_of(*["no", "yes", "yes"] * 4)
    output = decode("dtv", model, [0], draft_length=draft_length, max_new_tokens=13)
    commits = [event.tick for event in output.events if isinstance(event, Commit)]
    rounds = {tick: commits.count(tick) for tick in set(commits) - {0}}
    assert commits.count(0) == 1
    assert 1 + sum(rounds.values()) == len(output.token_ids) == output.counts.committed == 13
    accepted_or_extra = output.counts.accepted + len(rounds)
    assert accepted_or_extra == sum(rounds.values())  # every round commits its accepted drafts and one token more

"""The gallery: every wrong implementation is caught with its clause, every right one passes."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch

from reference import models, oracle
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.oracle.freedoms import Freedom
from reference.oracle.token_verdicts import TokensVerdict
from reference.oracle.verdicts import Verdict
from tests.cases.decoders import decode, lap_model
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro
from tests.oracle import gallery
from tests.oracle.outsider import Outsider, Report

BUDGET = 16
SEED = 3


@cache
def model_of(name: str) -> LoopedModel:
    """Gives a model on which drafts are accepted and rejected; the scripted one rejects 0 after 3."""
    if name == "ouro":
        return random_ouro(ouro_config(recurrence_depth=4, num_layers=1), seed=7)
    if name == "huginn":
        return random_huginn(huginn_config(core_layers=1), seed=7)
    return lap_model()


def run(kind: type[Outsider], name: str, *, stop_ids: Sequence[int] = (), draft_depth: int = 1) -> Report:
    return kind(
        model_of(name), [1, 2], draft_depth=draft_depth, max_new_tokens=BUDGET, stop_ids=stop_ids, seed=SEED
    ).run()


def tokens_of(report: Report, name: str, *, stop_ids: Sequence[int] = ()) -> TokensVerdict:
    return oracle.check_tokens(
        model_of(name),
        [1, 2],
        report.token_ids,
        max_new_tokens=BUDGET,
        finish_reason=report.finish_reason,
        eos_token_id=list(stop_ids),
        state_seed=SEED,
    )


@pytest.mark.parametrize("kind", gallery.RIGHT)
@pytest.mark.parametrize(
    "name,stop_ids,draft_depth",
    [("ouro", (), 1), ("ouro", (), 2), ("huginn", (), 1), ("lap", (), 1), ("lap", (3,), 1), ("lap", (0,), 1)],
)
def test_a_right_implementation_passes_whatever_it_does_otherwise(
    kind: type[Outsider], name: str, stop_ids: tuple[int, ...], draft_depth: int
) -> None:
    report = run(kind, name, stop_ids=stop_ids, draft_depth=draft_depth)
    assert tokens_of(report, name, stop_ids=stop_ids).verdict is Verdict.EXACT
    trace = oracle.check_trace(report.trace, decoder=kind.decoder, recurrence_depth=4, draft_depth=draft_depth)
    assert trace.verdict is Verdict.EXACT, str(trace)
    counts = oracle.check_counts(report.counts, report.trace)
    assert counts.verdict is Verdict.EXACT, str(counts)


@pytest.mark.parametrize(
    "kind,name,stop_ids,freedoms",
    [
        (Outsider, "ouro", (), set()),
        (gallery.RightInAnotherOrder, "ouro", (), {Freedom.ROW_ORDER}),
        (gallery.RightAndHoldsStopsBack, "lap", (0,), {Freedom.HELD_BACK_STOP}),
        (gallery.RightWithASecondOpinion, "ouro", (), {Freedom.EARLY_FLUSH, Freedom.DELAYED}),
        (gallery.Rounds, "ouro", (), set()),
        (gallery.RightInShortRounds, "ouro", (), {Freedom.WITHHELD}),
    ],
)
def test_what_it_does_otherwise_is_reported(
    kind: type[Outsider], name: str, stop_ids: tuple[int, ...], freedoms: set[Freedom]
) -> None:
    verdict = oracle.check_trace(run(kind, name, stop_ids=stop_ids).trace)
    assert {taken.freedom for taken in verdict.freedoms} == freedoms


@pytest.mark.parametrize("name", ["ouro", "huginn", "lap"])
def test_a_right_implementation_needs_no_cache(name: str) -> None:
    report = run(gallery.RightWithoutACache, name)
    assert len(report.token_ids) == BUDGET
    assert tokens_of(report, name).verdict is Verdict.EXACT


@pytest.mark.spec("AR-03", "KV-03", "KV-07", "MOD-05", "MOD-12")
@pytest.mark.parametrize(
    "kind,name",
    [
        (gallery.KeepsStaleCells, "ouro"),
        (gallery.KeepsStaleCells, "huginn"),
        (gallery.LeavesCodaEntriesOfDrafts, "huginn"),
        (gallery.RotatesOnePositionTooFar, "ouro"),
        (gallery.ForgetsTheNormBetweenLoops, "ouro"),
        (gallery.RotatesTheOtherPairs, "ouro"),
        (gallery.SharesTheFirstRecurrence, "ouro"),
        (gallery.SharesTheFirstRecurrence, "huginn"),
        (gallery.RedrawsTheInitialState, "huginn"),
        (gallery.VerifiesAtAShallowDepth, "ouro"),
        (gallery.AcceptsEveryDraft, "ouro"),
        (gallery.RestartsOnePositionTooFar, "ouro"),
    ],
)
def test_wrong_numbers_show_in_the_tokens(kind: type[Outsider], name: str) -> None:
    verdict = tokens_of(run(kind, name), name)
    assert verdict.verdict is Verdict.WRONG
    assert verdict.faults[0].clause == "AR-03"
    first = verdict.first_difference
    assert first is not None
    assert first.gap > first.tolerance


def test_a_token_verified_at_a_shallow_depth_is_named_as_that() -> None:
    verdict = tokens_of(run(gallery.VerifiesAtAShallowDepth, "ouro"), "ouro")
    assert verdict.faults[0].reason.partition("; ")[2].startswith("depth ")
    assert "3" in verdict.faults[0].reason.partition("; ")[2]


@pytest.mark.spec("SMP-14")
@pytest.mark.parametrize(
    "kind,stop_ids,reason",
    [
        (gallery.OverlooksAStopIdInAWave, (0,), "more tokens although decoding ends before them"),
        (gallery.StopsAtADraftedStopId, (0,), "the reference goes on with"),
        (gallery.RunsPastTheBudget, (), "1 more tokens although decoding ends before them, with reason length"),
        (gallery.CallsAStopTheBudget, (0,), "the finish reason is eos, not length"),
        (gallery.DropsTheFirstToken, (3,), "the stop id 3 is missing"),
    ],
)
def test_a_wrong_end_shows_in_the_tokens(kind: type[Outsider], stop_ids: tuple[int, ...], reason: str) -> None:
    verdict = tokens_of(run(kind, "lap", stop_ids=stop_ids), "lap", stop_ids=stop_ids)
    assert verdict.faults[0].clause == "SMP-14"
    assert reason in verdict.faults[0].reason


@pytest.mark.spec("SMP-11")
def test_a_first_token_that_is_dropped_shifts_all_others() -> None:
    verdict = tokens_of(run(gallery.DropsTheFirstToken, "lap"), "lap")
    assert [(fault.index, fault.clause) for fault in verdict.faults] == [(0, "AR-03"), (BUDGET - 1, "SMP-14")]


@pytest.mark.spec("NOT-01", "SMP-11", "SMP-12", "SMP-13", "SMP-14", "WFD-03", "WFD-04")
@pytest.mark.parametrize(
    "kind,stop_ids,draft_depth,clause",
    [
        (gallery.RestartsOnePositionTooFar, (), 1, "SMP-13"),
        (gallery.VerifiesAtAShallowDepth, (), 1, "WFD-04"),
        (gallery.OverlooksAStopIdInAWave, (0,), 1, "SMP-14"),
        (gallery.StopsAtADraftedStopId, (0,), 1, "SMP-14"),
        (gallery.DropsTheFirstToken, (), 1, "SMP-11"),
        (gallery.AcceptsEveryDraft, (), 1, "SMP-12"),
        (gallery.KeepsTheYoungestLane, (), 1, "SMP-13"),
        (gallery.DraftsOneRecurrenceEarly, (), 2, "WFD-04"),
        (gallery.RunsPastTheBudget, (), 1, "SMP-14"),
        (gallery.CallsAStopTheBudget, (0,), 1, "SMP-14"),
        (gallery.HoldsTheYoungestBack, (), 1, "WFD-03"),
    ],
)
def test_a_wrong_schedule_shows_in_the_trace(
    kind: type[Outsider], stop_ids: tuple[int, ...], draft_depth: int, clause: str
) -> None:
    report = run(kind, "lap", stop_ids=stop_ids, draft_depth=draft_depth)
    verdict = oracle.check_trace(report.trace)
    assert verdict.objection is not None
    assert verdict.objection.clause == clause, str(verdict)


@pytest.mark.spec("KV-03")
@pytest.mark.parametrize(
    "kind,name,reason",
    [
        (gallery.KeepsStaleCells, "ouro", "is stale: its lane 0 wrote it, and now it has lane 1"),
        (gallery.KeepsStaleCells, "huginn", "is stale: its lane 0 wrote it, and now it has lane 1"),
        (gallery.SharesTheFirstRecurrence, "ouro", "that recurrence 0 wrote last"),
    ],
)
def test_a_wrong_cell_shows_in_a_trace_that_tells_what_was_read(kind: type[Outsider], name: str, reason: str) -> None:
    report = run(kind, name)
    objection = oracle.check_trace(report.trace).objection
    assert objection is not None
    assert objection.clause == "KV-03"
    assert reason in objection.reason
    silent = "\n".join(
        json.dumps({name: value for name, value in json.loads(line).items() if name != "reads"})
        for line in report.lines
    )
    assert oracle.check_trace(silent).verdict is Verdict.EXACT


@pytest.mark.spec("DTV-06", "AR-03")
def test_a_bonus_token_that_is_taken_twice_shows_in_tokens_and_trace() -> None:
    report = run(gallery.TakesTheBonusTwice, "lap")
    assert tokens_of(report, "lap").faults[0].clause == "AR-03"
    objection = oracle.check_trace(report.trace).objection
    assert objection is not None
    assert objection.clause == "DTV-05", objection.reason


@pytest.mark.spec("DTV-06", "AR-03")
def test_rows_that_are_verified_one_off_show_in_the_tokens_alone() -> None:
    """The trace is one that could be: it tells which tokens the rows said, and not from which row each came."""
    report = run(gallery.VerifiesOneRowTooFar, "lap")
    assert oracle.check_trace(report.trace).verdict is Verdict.EXACT
    verdict = tokens_of(report, "lap")
    assert (verdict.faults[0].index, verdict.faults[0].clause) == (1, "AR-03")


@pytest.mark.spec("SMP-15")
def test_a_round_that_drafts_past_the_budget_shows_in_the_trace_alone() -> None:
    report = run(gallery.DraftsPastTheBudget, "lap")
    assert tokens_of(report, "lap").verdict is Verdict.EXACT
    objection = oracle.check_trace(report.trace).objection
    assert objection is not None
    assert objection.clause == "SMP-15", objection.reason


@pytest.mark.spec("COST-03", "COST-04")
@pytest.mark.parametrize(
    "kind,name,clause,reason",
    [
        (gallery.DividesByAllDrafts, "acceptance_rate", "COST-03", "divides by all drafts"),
        (gallery.CountsFlushesNotLanes, "flushed", "COST-04", "counts flushes"),
        (gallery.CountsTheFirstTokenAsAccepted, "accepted", "COST-03", "never drafted"),
        (gallery.CountsTheBonusAsAccepted, "accepted", "COST-03", "bonus tokens for example"),
    ],
)
def test_wrong_counts_show_beside_a_right_trace(kind: type[Outsider], name: str, clause: str, reason: str) -> None:
    report = run(kind, "lap")
    assert oracle.check_trace(report.trace).verdict is Verdict.EXACT
    (discrepancy,) = oracle.check_counts(report.counts, report.trace).discrepancies
    assert (discrepancy.name, discrepancy.clause) == (name, clause)
    assert reason in discrepancy.reason


@pytest.mark.spec("CONF-05")
@pytest.mark.parametrize("flavour", ["translation", "arithmetic"])
def test_what_bfloat16_decodes_is_a_near_tie_where_it_differs(flavour: str) -> None:
    """A wave in bfloat16 on trained weights, judged against the same weights in float32: no fault is found."""
    tokenizer = load_tokenizer("tiny-ouro")
    assert tokenizer is not None
    prompt = tokenizer.encode(default_prompts()[flavour]).ids
    model = models.load("tiny-ouro")
    options: dict[str, Any] = {"max_new_tokens": 32, "eos_token_id": None}
    ids = decode("wfd", models.load("tiny-ouro", dtype=torch.bfloat16), prompt, **options).token_ids
    right = decode("ar", model, prompt, **options).token_ids
    verdict = oracle.check_tokens(model, prompt, ids, dtype=torch.bfloat16, **options)
    assert verdict.verdict is not Verdict.WRONG, str(verdict)
    assert verdict.is_consistent_after_near_tie
    first = verdict.first_difference
    parting = next((k for k, (one, other) in enumerate(zip(ids, right, strict=True)) if one != other), None)
    assert (first and first.index) == parting
    assert (verdict.verdict is Verdict.NEAR_TIE) == (first is not None)


def test_the_gallery_is_all_here() -> None:
    kinds = {kind for kind in vars(gallery).values() if isinstance(kind, type) and issubclass(kind, Outsider)}
    wrong = {kind for kind in kinds if not kind.__name__.startswith("Right")} - {Outsider, gallery.Rounds}
    text = " ".join(str(vars(kind).get("__doc__")) for kind in kinds)
    assert "None" not in text
    assert len(wrong) >= 12

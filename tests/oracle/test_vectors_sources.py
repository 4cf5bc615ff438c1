"""The solutions are right, by sources that had no part in making them.

The official networks' own numbers, the table of MOD-06, closed forms, and another implementation of the wavefront.
"""

import json
from collections.abc import Sequence
from functools import cache, partial

import pytest
import torch

from reference import engine
from reference.ar import AR
from reference.cost.closed_forms import exact_ticks
from reference.dtv import DtV
from reference.models.scripted import ScriptedModel
from reference.oracle import vectors
from reference.oracle.vectors import FLAGS, Outcome, Vector
from reference.oracle.vectors.weights import described, loaded
from reference.provenance import Part
from reference.sampling import initial_noise
from reference.schedule import Accept, Commit, Reject
from reference.trace import from_jsonl
from reference.wfd import WFD
from tests.golden.data import assert_near, golden
from tests.oracle import gallery
from tests.oracle.outsider import Outsider

SCHEDULES = vectors.load("schedule")

VOCABULARY = 600
"""Above every id of the scripts."""


@cache
def vector(name: str) -> Vector:
    return next(one for one in vectors.load(name.partition("/")[0]) if one.id == name)


@pytest.mark.spec("MOD-12", "MOD-04")
@pytest.mark.parametrize(
    "name,family,prompt,state", [("ouro-tiny", "ouro", 2, "hidden"), ("huginn-tiny-zero-state", "huginn", 1, "state")]
)
def test_states_and_logits_are_those_of_the_official_network(name: str, family: str, prompt: int, state: str) -> None:
    one, recorded = vector(f"numerics/{name}"), golden(family)
    tokens = one.input["token_ids"]
    assert recorded.prompt(prompt)[: len(tokens)] == tokens
    for depth, states in list(enumerate(one.expected["states"]))[1:]:
        official = recorded.tensor(prompt, f"{state}.t{depth}")[: len(tokens)]
        assert_near(torch.tensor(states), official, 2e-5)
    for depth, logits in enumerate(one.expected["logits"], start=1):
        assert_near(torch.tensor(logits), recorded.tensor(prompt, f"logits.t{depth}")[len(tokens) - 1], 2e-4)


@pytest.mark.spec("KV-01", "MOD-12")
def test_cells_are_those_of_the_official_cache() -> None:
    expected, recorded = vector("numerics/ouro-tiny").expected, golden("ouro")
    for name, letter in (("keys", "k"), ("values", "v")):
        slots = [layer for recurrence in expected[name]["recurrent"] for layer in recurrence]
        assert len(slots) == 12
        for slot, cells in enumerate(slots):
            official = recorded.tensor(2, f"cache.{letter}.{slot}")[:, : len(cells)].transpose(0, 1)
            assert_near(torch.tensor(cells), official, 2e-5)


@pytest.mark.spec("KV-01")
def test_there_is_a_cell_for_every_layer_recurrence_and_position() -> None:
    ouro, huginn = vector("numerics/ouro-tiny").expected, vector("numerics/huginn-tiny-zero-state").expected
    for name in ("keys", "values"):
        assert {part: torch.tensor(cells).shape for part, cells in ouro[name].items()} == {
            "recurrent": (4, 3, 2, 4, 16)
        }
        assert {part: torch.tensor(cells).shape for part, cells in huginn[name].items()} == {
            "prelude": (1, 2, 2, 4, 16),
            "recurrent": (8, 4, 2, 4, 16),
            "coda": (1, 2, 2, 4, 16),
        }


@pytest.mark.spec("AR-03", "WFD-11", "DTV-07")
@pytest.mark.parametrize(
    "name,family,prompt,run",
    [
        ("ouro-tiny-1", "ouro", 0, ".t4"),
        ("ouro-tiny-12", "ouro", 2, ".t4"),
        ("ouro-tiny-stop", "ouro", 1, ".t4"),
        ("ouro-tiny-depth-3", "ouro", 1, ".t3"),
        ("huginn-tiny-zero-state", "huginn", 1, ".t8"),
        ("huginn-tiny-depth-4", "huginn", 1, ".t4"),
    ],
)
def test_tokens_are_those_of_the_official_network(name: str, family: str, prompt: int, run: str) -> None:
    one, recorded = vector(f"tokens/{name}"), golden(family)
    ids = one.expected["token_ids"]
    assert one.input["prompt_ids"] == recorded.prompt(prompt)
    assert ids == recorded.greedy(prompt, run)[: len(ids)]
    assert one.expected["finish_reason"] == ("eos" if ids[-1] in one.input["stop_ids"] else "length")


def about_sharing(what: str) -> list[Vector]:
    return [one for one in vectors.load("sharing") if one.input["what"] == what]


@pytest.mark.spec("SHR-02", "SHR-08", "SHR-09")
def test_slots_in_turn_are_those_of_the_formulas() -> None:
    in_turn = [one for one in about_sharing("slot_map") if isinstance(one.input["kv_slots"], int)]
    assert len(in_turn) >= 5
    for one in in_turn:
        slots, full, layers = (one.input[name] for name in ("kv_slots", "recurrence_depth", "recurrent_layers"))
        shared = slots < full
        assert one.expected == {
            "slots": [r % slots * layers + layer for r in range(full) for layer in range(layers)],
            "least_draft_depth": slots * ((full - 1) // slots) if shared else 1,
            "least_settled_depth": full if shared else 1,
        }


def slot_by_the_table(name: str, step: int) -> int:
    """Gives the slot of a step under a strategy of Huginn's code, as the table of SHR-02 has it."""
    _, compresses, rule = name.rpartition("compress-")
    if not compresses:
        return step
    if rule == "anchor":
        return step if step < 32 else 32 + step % 4
    return step % int(rule[1:]) if rule[0] == "s" else step // int(rule[1:])


@pytest.mark.spec("SHR-02", "SHR-08")
def test_slots_of_strategies_and_their_bounds_follow_from_the_table() -> None:
    named = [one for one in about_sharing("slot_map") if isinstance(one.input["kv_slots"], str)]
    assert len(named) >= 8
    for one in named:
        name, full, layers = (one.input[key] for key in ("kv_slots", "recurrence_depth", "recurrent_layers"))
        expected = [slot_by_the_table(name, t) for t in range(full * layers)]
        assert one.expected["slots"] == expected
        steps = range(len(expected))
        waits = [later - t for t in steps for later in steps if expected[later] == expected[t]]
        assert one.expected["least_draft_depth"] == next(d for d in range(1, full + 1) if max(waits) <= d * layers)


@pytest.mark.spec("SHR-02", "SHR-05", "SHR-07", "SHR-08")
def test_texts_under_a_strategy_are_those_of_the_official_network() -> None:
    recorded = golden("huginn")
    noted = recorded.notes["prompts"][1]["greedy_kv"]
    held = [one for one in about_sharing("text") if one.input["kv_slots"] in noted]
    assert {one.input["decoder"] for one in held} == {"ar", "wfd"}
    for one in held:
        ids = one.expected["token_ids"]
        assert one.input["prompt_ids"] == recorded.prompt(1)
        assert ids == noted[one.input["kv_slots"]]["tokens"][: len(ids)]
        assert ids != recorded.greedy(1, ".t8")[: len(ids)]


@pytest.mark.spec("SHR-03", "SHR-11")
def test_a_text_is_exact_if_its_cells_are_those_of_a_run_without_sharing() -> None:
    for one in about_sharing("text"):
        if one.input["model"]["name"] != "ouro-tiny":
            continue
        # Ouro has no prelude and no coda; 3 layers of 4 heads of 16 numbers, keys and values, 8 bytes each.
        positions = len(one.input["prompt_ids"]) + one.input["max_new_tokens"] - 1
        assert one.expected["kv_bytes"] == positions * one.input["kv_slots"] * 3 * 4 * 16 * 2 * 8
        assert (one.expected["exactness"] == "exact") == (one.input["kv_slots"] == 4)


@pytest.mark.parametrize("name", ["tiny-ouro", "tiny-huginn", "ouro-tiny", "huginn-tiny"])
def test_every_vector_is_about_the_weights_that_are_here(name: str) -> None:
    about = [one for one in vectors.load() if one.input.get("model", {}).get("name") == name]
    assert about
    assert all(one.input["model"] == described(name) for one in about), "run: make vectors"


@pytest.mark.spec("MOD-06")
def test_draws_are_those_of_the_library_and_of_the_table_in_the_specification() -> None:
    small = vector("sampling/draw-small").expected
    assert (small["key"], small["bits"][1]) == ("0xc05e4abc9c41f1a1", "0x3e19893ee1982fd8")
    assert small["uniform"][1] == 0.24257715020357350
    assert small["normal"][1] * 0.4**0.5 == pytest.approx(-0.4400724654649444, abs=1e-13)
    for one in vectors.load("sampling"):
        if one.input["what"] != "initial_state":
            continue
        seed, position = int(one.input["state_seed"], 0), one.input["position"]
        drawn = initial_noise(seed, [position], one.input["elements"])[0]
        assert_near(drawn, torch.tensor(one.expected["normal"], dtype=torch.float64), 1e-13)
        # Back from the draws to the numbers between 0 and 1: the distribution function of the cut normal.
        within_cut = torch.erf(torch.tensor(3 / 2**0.5, dtype=torch.float64))
        uniform = (torch.erf(drawn / 2**0.5) / within_cut + 1) / 2
        assert_near(uniform, torch.tensor(one.expected["uniform"], dtype=torch.float64), 1e-13)


@pytest.mark.spec("WFD-12", "AR-02", "DTV-08")
@pytest.mark.parametrize("one", SCHEDULES, ids=[one.id for one in SCHEDULES])
def test_ticks_follow_from_the_script_by_the_closed_forms(one: Vector) -> None:
    problem, num_tokens = one.input, len(one.expected["token_ids"])
    (start,) = from_jsonl(json.dumps(one.expected["events"][0]))
    first = problem["prompt_length"]
    verdicts = [
        Accept(0, first + k) if verified == drafted else Reject(0, first + k, drafted, verified)
        for k, (verified, drafted) in enumerate(zip(problem["verified"], problem["drafted"], strict=True))
        if 0 < k < num_tokens
    ]
    commits = [Commit(0, first, 0)] * num_tokens
    assert one.expected["counts"]["ticks"] == exact_ticks([start, *commits, *verdicts])


def scripted(one: Vector) -> ScriptedModel:
    """Gives a model that says what a vector's script says."""
    problem = one.input

    def table(prefix: tuple[int, ...], depth: int) -> list[float]:
        script = problem["verified"] if depth == problem["recurrence_depth"] else problem["drafted"]
        place = len(prefix) - problem["prompt_length"]
        said = script[place] if 0 <= place < len(script) else 0
        return [float(token == said) for token in range(VOCABULARY)]

    return ScriptedModel(table=table, vocab_size=VOCABULARY, recurrence_depth=problem["recurrence_depth"])


def answers_of(kind: type[Outsider], flag: str | None = None) -> list[dict[str, object]]:
    """Lets an implementation that shares nothing with ours answer; it knows one decoder, and no end of the context.

    Args:
        kind: The implementation.
        flag: The flag of the vectors that it is asked for; None asks for all.
    """
    answers: list[dict[str, object]] = []
    for one in SCHEDULES:
        problem = one.input
        is_bounded = problem["context_length"] < 64 or problem["max_new_tokens"] == 0
        foreign = problem["decoder"] != kind.decoder or is_bounded
        if foreign or flag not in {None, one.flag}:
            answers.append({"id": one.id, "skipped": "not in this engine"})
            continue
        asked = type(kind.__name__, (kind,), {"draft_length": problem["draft_length"]})
        report = asked(
            scripted(one),
            [1] * problem["prompt_length"],
            draft_depth=problem["draft_depth"],
            max_new_tokens=problem["max_new_tokens"],
            stop_ids=problem["stop_ids"],
        ).run()
        counts = {name: value for name, value in report.counts.items() if value == value}  # noqa: PLR0124 - NaN
        answers.append(
            {
                "id": one.id,
                "token_ids": report.token_ids,
                "finish_reason": report.finish_reason,
                "events": [json.loads(line) for line in report.lines],
                "counts": counts,
            }
        )
    return answers


@pytest.mark.parametrize("kind", gallery.RIGHT)
def test_another_implementation_solves_every_schedule_that_it_knows(kind: type[Outsider]) -> None:
    verdict = vectors.check(answers_of(kind))
    assert verdict.verdict == "exact", str(verdict)
    known = sum(one.input["decoder"] == kind.decoder for one in SCHEDULES)
    assert sum(one.outcome is Outcome.EXACT for one in verdict.vectors) > known / 2


@pytest.mark.parametrize(
    "kind,flag,clause",
    [
        (gallery.RestartsOnePositionTooFar, "flush", "SMP-13"),
        (gallery.OverlooksAStopIdInAWave, "stop", "SMP-14"),
        (gallery.StopsAtADraftedStopId, "stop", "SMP-14"),
        (gallery.AcceptsEveryDraft, "flush", "SMP-12"),
        (gallery.KeepsTheYoungestLane, "flush", "SMP-13"),
        (gallery.DraftsOneRecurrenceEarly, "schedule", "WFD-04"),
        (gallery.RunsPastTheBudget, "limit", "SMP-14"),
        (gallery.CallsAStopTheBudget, "stop", "SMP-14"),
        (gallery.HoldsTheYoungestBack, "schedule", "WFD-03"),
        (gallery.CountsFlushesNotLanes, "flush", "COST-04"),
    ],
)
def test_a_wrong_implementation_fails_a_vector_whose_flag_says_why(
    kind: type[Outsider], flag: str, clause: str
) -> None:
    failed = [one for one in vectors.check(answers_of(kind, flag)).vectors if one.outcome is Outcome.WRONG]
    assert clause in {one.clause for one in failed}
    assert all(FLAGS[flag] in str(one) for one in failed)


@pytest.mark.spec("SHR-04")
def test_shared_slots_that_keep_the_first_recurrences_of_the_prompt_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake of an outsider who compacts the prompt's cells, from the wrong end."""
    prefill = engine.Decoding._prefill  # noqa: SLF001 - the mistake is made inside

    def wrong(self: engine.Decoding, prompt_ids: Sequence[int]) -> int:
        token = prefill(self, prompt_ids)
        if self._sharing is None:
            return token
        own = engine.Decoding(self._model, prompt_ids, self._schedule, state_scale=0.0)
        slot_of, prompt = self._sharing.by_recurrence, slice(0, len(prompt_ids))
        assert slot_of is not None
        for slot in set(slot_of):
            keys, values = own.kv.cells(Part.RECURRENT, prompt, recurrence=slot_of.index(slot))
            self.kv._keys[Part.RECURRENT][:, slot, :, :, prompt] = keys.transpose(-1, -2)  # noqa: SLF001
            self.kv._values[Part.RECURRENT][:, slot, :, prompt] = values  # noqa: SLF001
        return token

    texts = [one for one in about_sharing("text") if one.input["kv_slots"] in {1, 2}]
    right = [{"id": one.id, "token_ids": one.expected["token_ids"]} for one in texts]
    monkeypatch.setattr(engine.Decoding, "_prefill", wrong)
    answers = [{"id": one.id, "token_ids": decoded(one).token_ids} for one in texts]
    assert answers != right
    others = [{"id": one.id, "skipped": "about something else"} for one in vectors.load("sharing") if one not in texts]
    verdict = vectors.check([*answers, *others])
    assert verdict.verdict == "wrong"
    found = {one.clause for one in verdict.vectors if one.outcome is Outcome.WRONG}
    assert found == {"SHR-07"}, "the text is not that of AR under the same sharing"


def decoded(text: Vector) -> engine.Output:
    """Runs our engine on a text about sharing."""
    problem = text.input
    make: dict[str, engine.MakeSchedule] = {
        "ar": AR,
        "dtv": partial(DtV, draft_depth=problem["draft_depth"], draft_length=problem["draft_length"]),
        "wfd": partial(WFD, draft_depth=problem["draft_depth"]),
    }
    return engine.generate(
        loaded(problem["model"]["name"]),
        problem["prompt_ids"],
        make[problem["decoder"]],
        max_new_tokens=problem["max_new_tokens"],
        eos_token_id=problem["stop_ids"],
        state_scale=problem["state_scale"],
        kv_slots=problem["kv_slots"],
    )

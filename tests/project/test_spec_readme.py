"""What `spec/README.md` tells of `WFD.tla` is so: the run it shows, the lines it quotes, the names it explains."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from inspect import getsource

import pytest

from reference.schedule import Accept, Commit, Draft, Finish, Flush, Reject, State
from spec import tlc
from tests.driving import Case, Play, Step, make_wfd, play
from tests.formal.cases import WFD_MUTANTS
from tests.project.sources import REPOSITORY

README = (REPOSITORY / "spec" / "README.md").read_text(encoding="utf-8")
WFD = (tlc.HERE / "WFD.tla").read_text(encoding="utf-8")
SCHEDULE = (tlc.HERE / "Schedule.tla").read_text(encoding="utf-8")

LETTERS = ".abcdefxyz"
"""Tokens as the page shows them. The text is a to f; x, y, z are drafted instead of c, d, e."""


@dataclass(frozen=True)
class Alphabet:
    """A model that counts on, and whose draft after `ab` is wrong, and so all that is built on it."""

    vocab_size: int = len(LETTERS)
    """Number of token ids."""

    def verified(self, prefix: tuple[int, ...]) -> int:
        """Counts on."""
        return prefix[-1] + 1

    def drafted(self, prefix: tuple[int, ...], depth: int, tick: int) -> int:
        """Counts on, but with x after `ab`."""
        del depth, tick
        return LETTERS.index("x") if prefix[-1] == LETTERS.index("b") else prefix[-1] + 1


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The variables of the model after a tick."""

    action: str
    """The action that was taken."""
    state: State
    """`ticks`, `lanes` and `reason`, as the code has them."""
    out: str
    """`out`."""
    accepted: int = 0
    """`accepted`."""
    rejected: int = 0
    """`rejected`."""
    verdict: str = "none"
    """`verdict`."""
    flushed: int = 0
    """`flushed`."""
    kv: dict[tuple[int, int], str] = field(default_factory=dict)
    """`kv`: the text of every cell (position, recurrence) that is not `None`; the prompt's left out."""
    coda: dict[int, tuple[int, str]] = field(default_factory=dict)
    """`coda`: the depth and text of every entry that is not `NoEntry`, by position; the prompt's left out."""


def action(step: Step) -> str:
    """Gives the name of the action of `WFD.tla` that a tick is."""
    kinds = {type(event) for event in step.events}
    if Finish in kinds:
        return "Finish"
    if Reject in kinds:
        return "Reject"
    if Commit in kinds and Accept not in kinds:
        return "Restart"
    return ("Accept" if Accept in kinds else "Climb") + ("AndDraft" if Draft in kinds else "")


def moments(run: Play) -> Iterator[Moment]:
    """Gives the variables at the start and after every tick, changed as the actions of the model change them."""
    now = Moment(action="Start", state=run.first, out=LETTERS[run.token_ids[0]])
    yield now
    for step in run.steps:
        lanes, events = step.before.lanes, {type(event): event for event in step.events}
        tokens = "".join(LETTERS[lane.token] for lane in lanes[1:])
        texts = {lane.position: now.out + tokens[:behind] for behind, lane in enumerate(lanes)}
        kv = now.kv | {(lane.position, lane.depth): texts[lane.position] for lane in step.tick.lanes}
        coda = now.coda | {one.lane.position: (one.lane.depth, texts[one.lane.position]) for one in step.tick.readouts}
        flush = events.get(Flush)
        # A flush ends the incarnation of every lane; otherwise those that go on keep what they have written.
        counting = {*range(step.after.frontier - 1), *(lane.position for lane in step.after.lanes if not flush)}
        now = Moment(
            action=action(step),
            state=step.after,
            out="".join(LETTERS[token] for token in run.sequence[1 : step.after.frontier]),
            accepted=now.accepted + (Accept in events),
            rejected=now.rejected + (Reject in events),
            verdict=(
                ("accept" if Accept in events else "reject" if Reject in events else "none")
                if Commit in events
                else now.verdict
            ),
            flushed=len(flush.positions) if isinstance(flush, Flush) else 0,
            kv={place: text for place, text in kv.items() if place[0] in counting},
            coda={position: entry for position, entry in coda.items() if position in counting},
        )
        yield now


def picture(of: Iterable[Moment]) -> str:
    """Draws a run: one line a tick, a column for every position with its lane as token:depth."""
    lines = ["ticks  action          1    2    3    4    5    out      accepted  rejected  verdict  flushed"]
    for now in of:
        lanes = {lane.position: f"{LETTERS[lane.token]}:{lane.depth}" for lane in now.state.lanes}
        places = " ".join(f"{lanes.get(position, '.'):<4}" for position in range(1, 6))
        numbers = f"{now.accepted:>8}  {now.rejected:>8}  {now.verdict:<7}  {now.flushed:>7}"
        lines.append(f"{now.state.ticks:>5}  {now.action:<14}  {places} {now.out:<8} {numbers}")
    return "\n".join(lines)


def cells(now: Moment) -> str:
    """Draws `kv` and `coda`: one line a position, what each recurrence was computed from, then the coda entry."""
    lines = [f"after tick {now.state.ticks:<2}  " + "".join(f"r = {recurrence:<3}" for recurrence in range(4)) + "coda"]
    for position in range(1, 6):
        texts = "".join(f"{now.kv.get((position, recurrence), '.'):<7}" for recurrence in range(4))
        depth, text = now.coda.get(position, (0, ""))
        lines.append(f"position {position}     {texts}" + (f"depth {depth}: {text}" if depth else "."))
    return "\n".join(lines)


CASE = Case(table=Alphabet(), prompt=(0,), recurrence_depth=4, draft_depth=1, max_new_tokens=6)
RUN = tuple(moments(play(make_wfd, CASE)))


@pytest.mark.parametrize("drawn", [picture(RUN), cells(RUN[4]), cells(RUN[5])], ids=["run", "before", "after"])
def test_the_run_shown_is_the_run_of_the_code(drawn: str) -> None:
    assert f"```text\n{drawn}\n" in README or f"\n\n{drawn}\n```" in README, drawn


def test_the_numbers_told_of_the_run_are_those_of_the_run() -> None:
    ticks, tokens = RUN[-1].state.ticks, len(RUN[-1].out) - 1
    assert (tokens, CASE.recurrence_depth * tokens, ticks) == (5, 20, 11)
    assert "AR takes 20 ticks for the five tokens after the first, this run took 11" in " ".join(README.split())
    assert max(now.flushed for now in RUN) == make_wfd(CASE).wavefront_width - 1 == 3


def table(heading: str) -> list[list[str]]:
    """Gives the rows of the tables under a heading, cell by cell."""
    _, _, section = README.partition(f"### {heading}\n")
    lines = re.findall(r"^\| (`.*) \|$", section.partition("\n#")[0], re.MULTILINE)
    return [line.split(" | ") for line in lines]


def names(cells_of: Iterable[str]) -> set[str]:
    """Gives the names that cells hold as code."""
    return {name for cell in cells_of for name in re.findall(r"`(\w+)`", cell)}


def defined(text: str) -> set[str]:
    """Gives the names that a TLA+ module defines."""
    return set(re.findall(r"^(\w+)(?:\([^)]*\))? *==", text, re.MULTILINE))


def variables(text: str) -> set[str]:
    """Gives the variables of a TLA+ module."""
    (listed,) = re.findall(r"^vars == <<(.*)>>", text, re.MULTILINE)
    return set(re.findall(r"\w+", listed))


def test_every_variable_is_explained() -> None:
    assert names(row[0] for row in table("The state")) == variables(SCHEDULE)


def test_every_action_stands_beside_its_code() -> None:
    explained = names(row[0] for row in table("The steps, beside the code"))
    (step,) = re.findall(r"^Step == (.*)$", WFD, re.MULTILINE)
    assert set(re.findall(r"\w+", step)) <= explained <= defined(WFD) | defined(SCHEDULE)
    assert {now.action for now in RUN} <= explained


def quoted_wrongly(rows: Iterable[list[str]]) -> list[str]:
    """Names the rows whose line does not stand in their function."""
    wrong = []
    for name, _, function, line in rows:
        module, *path = function.strip("`").split(".")
        found: object = import_module(f"reference.{module}")
        for part in path:
            found = getattr(found, part)
        assert callable(found)
        if line.strip("`") not in [text.partition("  #")[0].strip() for text in getsource(found).splitlines()]:
            wrong.append(name)
    return wrong


def test_every_line_quoted_stands_in_its_function() -> None:
    assert quoted_wrongly(table("The steps, beside the code")) == []


def test_a_line_that_stands_elsewhere_is_found() -> None:
    rows = [
        ["`There`", "", "`stopping.Stopping.may_inject`", "`return position + 1 < self.end`"],
        ["`Elsewhere`", "", "`stopping.Stopping.reason_at`", "`return position + 1 < self.end`"],
    ]
    assert quoted_wrongly(rows) == ["`Elsewhere`"]


def test_every_property_that_is_checked_is_explained() -> None:
    explained = names(row[0] for row in table("What the invariants say"))
    assert explained == {*tlc.INVARIANTS["WFD"], *tlc.PROPERTIES["WFD"]}


@pytest.mark.parametrize(
    "mutant,put", [("drafts one recurrence early", "d - 1"), ("verifies one recurrence early", "T - 1")]
)
def test_the_mutants_suggested_violate_what_the_page_says(mutant: str, put: str) -> None:
    """That they do is shown where TLC runs on them; here, that the page speaks of the same ones."""
    (((_, edit),), violated) = WFD_MUTANTS[mutant]
    definition = edit.partition(" ")[0]
    assert edit.endswith(put)
    assert re.search(rf"`{put}` for `{put[0]}` in `{definition}`, and `{violated}`", " ".join(README.split()))

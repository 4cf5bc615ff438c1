"""The traces that the stepper plays: every decoder on the same few texts, with some depths and draft lengths.

One file for each text, with the prompt, what its tokens say, and for every run its events, one a line, each of them a
line of the published format (CONF-07).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reference import ar, dtv, models, trace, wfd
from reference.cli.inputs import Texts
from reference.engine import Options, Output
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer

_MAX_NEW_TOKENS: Final = 19
_STORY: Final = "<|im_start|>user\nTell me a story of the fox and the red box.<|im_end|>\n<|im_start|>assistant\n"
"""A request unlike any that the shipped models were trained on: their drafts for it are more often wrong."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One text to be decoded."""

    model: str
    """A shipped model."""
    what: str
    """What the text is, in the reader's words; a flavour of the default prompts, or a story."""
    recurrence_depths: tuple[int, ...]
    """T, the model's own first."""
    draft_depths: tuple[int, ...]
    """d; where it is T or more, there is no run."""
    draft_lengths: tuple[int, ...]
    """gamma."""

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.model}-{self.what}.json"

    @property
    def prompt(self) -> str:
        """Its text."""
        return _STORY if self.what == "story" else default_prompts()[self.what]


SCENES: Final = (
    Scene("tiny-ouro", "story", (4, 2), (1, 2), (2, 4)),
    Scene("tiny-ouro", "arithmetic", (4, 2), (1, 2), (2, 4)),
    Scene("tiny-huginn", "story", (16, 8), (2, 4), (2, 4)),
)
"""What the stepper offers, first one first."""


def files(docs: Path) -> Mapping[Path, str]:
    """Gives the content of every file."""
    folder = docs / "assets" / "traces"
    index = [{"name": f"{scene.model}: {scene.what}", "file": scene.file} for scene in SCENES]
    return {folder / "index.json": json.dumps(index, indent=2) + "\n"} | {
        folder / scene.file: played(scene) for scene in SCENES
    }


def played(scene: Scene) -> str:
    """Decodes a text with every decoder and gives its file."""
    texts = Texts(load_tokenizer(scene.model))
    outputs = [out for depth in scene.recurrence_depths for out in _runs(scene, texts.ids(scene.prompt), depth)]
    lines = [trace.to_jsonl(out.events).splitlines() for out in outputs]
    used = sorted({token for run in lines for line in run for token in _tokens(json.loads(line))})
    head = {"prompt": scene.prompt, "labels": {str(token): texts.label(token) for token in used}}
    runs = ",\n".join("[\n" + ",\n".join(run) + "\n]" for run in lines)
    return json.dumps(head)[:-1] + f', "runs": [\n{runs}\n]}}\n'


def _runs(scene: Scene, ids: Sequence[int], recurrence_depth: int) -> Iterator[Output]:
    """Decodes with every decoder at one T, all to the same text."""
    model, options = models.load(scene.model), Options(recurrence_depth=recurrence_depth)
    first = ar.generate(model, ids, max_new_tokens=_MAX_NEW_TOKENS, **options)
    yield first
    for depth in scene.draft_depths:
        if depth < recurrence_depth:
            drafts = [
                dtv.generate(
                    model, ids, max_new_tokens=_MAX_NEW_TOKENS, draft_depth=depth, draft_length=length, **options
                )
                for length in scene.draft_lengths
            ]
            drafts.append(wfd.generate(model, ids, max_new_tokens=_MAX_NEW_TOKENS, draft_depth=depth, **options))
            assert all(out.token_ids == first.token_ids for out in drafts)
            yield from drafts


def _tokens(event: Mapping[str, object]) -> Iterable[int]:
    """Gives the token ids that an event names; those of lanes were named when the lanes were started."""
    return [value for name in ("token", "draft_token", "verified_token") if isinstance(value := event.get(name), int)]

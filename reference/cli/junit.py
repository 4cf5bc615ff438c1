"""Verdicts as JUnit XML, which CI systems show as tests.

The root is `testsuites` with one `testsuite`, which counts `tests`, `failures`, `errors` and `skipped`. What is wrong
is a `failure` whose type is the clause; a near tie is no failure, and explains itself in `system-out`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""
_SKIPPED: Final = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One thing that was judged."""

    __test__ = False  # pytest is not to collect it

    name: str
    """What was judged."""
    verdict: str
    """`exact`, `near_tie` or `wrong`; `skipped` where the candidate declined to answer."""
    complaint: str | None
    """If it is wrong: the clause and the reason in a line, then more."""
    explanation: str
    """The verdict in words."""
    seconds: float
    """How long judging took."""


def to_junit(suite: str, cases: Sequence[TestCase]) -> str:
    """Writes verdicts as a JUnit XML document.

    Args:
        suite: Name of the suite, and the class name of its tests.
        cases: What was judged.
    """
    failed = sum(case.complaint is not None for case in cases)
    skipped = sum(case.verdict == _SKIPPED for case in cases)
    seconds = sum(case.seconds for case in cases)
    totals = {
        "tests": str(len(cases)),
        "failures": str(failed),
        "errors": "0",
        "skipped": str(skipped),
        "time": f"{seconds:.3f}",
    }
    root = ET.Element("testsuites", totals)
    group = ET.SubElement(root, "testsuite", {"name": suite} | totals)
    for case in cases:
        named = {"classname": suite, "name": _clean(case.name), "time": f"{case.seconds:.3f}"}
        element = ET.SubElement(group, "testcase", named)
        if case.complaint is not None:
            message = _clean(case.complaint.partition("\n")[0])
            failure = ET.SubElement(element, "failure", {"type": message.partition(":")[0], "message": message})
            failure.text = _clean(case.complaint)
        elif case.verdict == _SKIPPED:
            ET.SubElement(element, "skipped", {"message": _clean(case.explanation)})
        elif case.verdict != "exact":
            ET.SubElement(element, "system-out").text = _clean(case.explanation)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("?", text)

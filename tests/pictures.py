"""What tests of pictures read them with: names for tokens, and the elements of an SVG document."""

from collections import Counter
from xml.etree import ElementTree as ET

WORDS = ("the", " cat", " sat", " on", "\n", " <mat> &", "<|im_end|>", " gardener")
SVG = "{http://www.w3.org/2000/svg}"


def label(token: int) -> str:
    return WORDS[token % len(WORDS)]


def parsed(document: str) -> ET.Element:
    return ET.fromstring(document)  # noqa: S314 - our own text


def classes(root: ET.Element, tag: str) -> Counter[str]:
    return Counter(element.get("class", "") for element in root.iter(SVG + tag))

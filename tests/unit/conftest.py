"""Unit tests run with the run-time checks of annotations."""

from tests.checked import annotations_are_checked

__all__ = ["annotations_are_checked"]

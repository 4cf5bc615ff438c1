"""Every test here runs without the run-time checks of annotations."""

from tests.unchecked import annotations_are_not_checked

__all__ = ["annotations_are_not_checked"]

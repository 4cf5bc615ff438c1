"""Sizes of KV cells by formula."""

import pytest

from reference.models.protocol import KVShapes


@pytest.mark.spec("KV-01")
def test_slots_of_a_position_are_prelude_plus_t_recurrent_plus_coda_layers() -> None:
    shapes = KVShapes(prelude_layers=2, recurrent_layers=4, coda_layers=2, kv_heads=5, head_dim=6)
    assert [shapes.num_slots(depth) for depth in (1, 4, 32)] == [8, 20, 132]


@pytest.mark.spec("KV-01", "KV-02")
@pytest.mark.parametrize("bytes_per_element", [2, 4, 8])
def test_a_slot_holds_one_key_and_one_value_of_every_head(bytes_per_element: int) -> None:
    shapes = KVShapes(prelude_layers=0, recurrent_layers=1, coda_layers=0, kv_heads=5, head_dim=6)
    assert shapes.bytes_per_position(3, bytes_per_element=bytes_per_element) == 3 * 2 * 5 * 6 * bytes_per_element

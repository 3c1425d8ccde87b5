"""Packing messages into batches."""

from hourbell.domain.packing import MAX_BYTES, encoded_size, pack
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(min_value=0, max_value=400_000), max_size=60))
def test_batches_keep_order_and_both_limits(sizes: list[int]) -> None:
    batches = list(pack(sizes, lambda size: size))
    assert [size for batch in batches for size in batch] == sizes
    assert all(1 <= len(batch) <= 10 for batch in batches)
    assert all(sum(batch) <= MAX_BYTES for batch in batches)


def test_a_batch_is_filled_to_the_byte() -> None:
    half = MAX_BYTES // 2
    assert list(pack([half, half], lambda size: size)) == [[half, half]]
    assert list(pack([half, half + 1], lambda size: size)) == [[half], [half + 1]]


def test_what_is_too_large_for_any_batch_travels_alone() -> None:
    sizes = [1, MAX_BYTES + 1, 2]
    assert list(pack(sizes, lambda size: size)) == [[1], [MAX_BYTES + 1], [2]]


def test_size_is_counted_in_bytes_of_utf8() -> None:
    assert encoded_size("bell") == 4
    assert encoded_size("Glöckchen \N{BELL}") == len("Glöckchen \N{BELL}".encode())

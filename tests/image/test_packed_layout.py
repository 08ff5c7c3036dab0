"""Layouts: packing follows the affine map element by element, unpacking undoes it."""

import json
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ProgramError
from accel.image.packed_layout import PackedLayout, blocked
from tests.expect import refused
from tests.strategies import examples

small = st.integers(1, 5)


@st.composite
def layouts(draw: st.DrawFn, *, factor: int = 5) -> PackedLayout:
    """Any affine map of one to three by one to five dimensions."""
    dimensions, packed = draw(st.integers(1, 3)), draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    coefficient = st.lists(st.integers(0, factor), min_size=len(packed), max_size=len(packed))
    return PackedLayout(
        shape=tuple(draw(st.lists(small, min_size=dimensions, max_size=dimensions))),
        packed=tuple(packed),
        element_dims=draw(st.integers(0, len(packed))),
        coefficients=tuple(tuple(draw(coefficient)) for _ in range(dimensions)),
    )


@st.composite
def blockings(draw: st.DrawFn) -> PackedLayout:
    """Blocks of a tensor along some of its dimensions, in any order."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    order = draw(st.permutations(range(len(shape))))
    chosen = order[: draw(st.integers(0, len(order)))]
    return blocked(shape, tuple((d, draw(small)) for d in chosen))


def numbers(shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """All different, none zero."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


def source(layout: PackedLayout, packed: tuple[int, ...]) -> tuple[int, ...]:
    """The plain index that a packed one stands for."""
    return tuple(sum(c * p for c, p in zip(row, packed, strict=True)) for row in layout.coefficients)


@given(layout=layouts() | blockings())
@examples(150)
def test_packing_follows_the_map(layout: PackedLayout) -> None:
    plain = numbers(layout.shape)
    packed = layout.pack(plain)
    assert packed.shape == layout.packed
    assert packed.flags.c_contiguous
    for index in product(*map(range, layout.packed)):
        at = source(layout, index)
        inside = all(i < n for i, n in zip(at, layout.shape, strict=True))
        assert packed[index] == (plain[at] if inside else 0)


@given(layout=layouts() | blockings())
@examples(150)
def test_unpacking_follows_the_map(layout: PackedLayout) -> None:
    """Where several packed values stand for one element, it is one of them; where none does, zero."""
    packed = numbers(layout.packed)
    candidates: dict[tuple[int, ...], set[int]] = {}
    for index in product(*map(range, layout.packed)):
        candidates.setdefault(source(layout, index), set()).add(int(packed[index]))
    plain = layout.unpack(packed)
    assert plain.shape == layout.shape
    for at in product(*map(range, layout.shape)):
        assert int(plain[at]) in candidates.get(at, {0})


@given(layout=blockings())
@examples(100)
def test_blocks_hold_every_element_once(layout: PackedLayout) -> None:
    plain = numbers(layout.shape)
    packed = layout.pack(plain)
    np.testing.assert_array_equal(layout.unpack(packed), plain)
    assert sorted(packed[packed != 0]) == list(range(1, plain.size + 1))
    outer = len(layout.packed) - layout.element_dims
    assert layout.elements * prod(layout.packed[outer:]) == packed.size


@given(layout=layouts() | blockings())
@examples(50)
def test_layouts_travel_as_data(layout: PackedLayout) -> None:
    assert PackedLayout.from_dict(json.loads(json.dumps(layout.to_dict()))) == layout


def test_the_layout_of_a_left_operand() -> None:
    """Elements of 2 x 4, in row-major order of the blocks; the last ones are filled up with zeros."""
    layout = blocked((3, 5), ((0, 2), (1, 4)))
    assert (layout.packed, layout.elements, layout.repeats) == ((2, 2, 2, 4), 4, False)
    plain = np.arange(1, 16, dtype=np.int8).reshape(3, 5)
    assert layout.pack(plain).tolist() == [
        [[[1, 2, 3, 4], [6, 7, 8, 9]], [[5, 0, 0, 0], [10, 0, 0, 0]]],
        [[[11, 12, 13, 14], [0, 0, 0, 0]], [[15, 0, 0, 0], [0, 0, 0, 0]]],
    ]
    assert layout.pack(np.asfortranarray(plain)).tolist() == layout.pack(plain).tolist()
    assert layout.pack(plain).dtype == np.int8


def test_a_bias_is_repeated_in_every_row() -> None:
    layout = blocked((3,), ((None, 2), (0, 2)))
    assert layout.repeats
    assert layout.pack(np.array([7, 8, 9], np.int32)).tolist() == [[[7, 8], [7, 8]], [[9, 0], [9, 0]]]
    single = blocked((3,), ((None, 1), (0, 2)))
    assert not single.repeats
    assert layout.unpack(layout.pack(np.array([7, 8, 9], np.int32))).tolist() == [7, 8, 9]
    assert single.unpack(single.pack(np.array([7, 8, 9], np.int32))).tolist() == [7, 8, 9]


def test_what_a_dimension_of_one_is_multiplied_by_does_not_matter() -> None:
    layout = PackedLayout(shape=(3,), packed=(1, 3), element_dims=1, coefficients=((1 << 70, 1),))
    assert layout.pack(np.array([7, 8, 9])).tolist() == [[7, 8, 9]]


def test_sizes_that_memory_never_holds_are_counted_right() -> None:
    layout = PackedLayout(
        shape=(1,), packed=(1 << 40, 1 << 40, 4), element_dims=1, coefficients=((0, 0, 1 << 70),)
    )
    assert layout.elements == 1 << 80
    assert layout.extents == (1 + 3 * (1 << 70),)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"coefficients": ((1,),)}, "a layout of 1 by 2 dimensions has other coefficients"),
        ({"coefficients": ()}, "a layout of 1 by 2 dimensions has other coefficients"),
        ({"shape": (0,)}, "a layout has a size below one or a negative coefficient"),
        ({"packed": (2, -1)}, "a layout has a size below one or a negative coefficient"),
        ({"coefficients": ((1, -1),)}, "a layout has a size below one or a negative coefficient"),
        ({"element_dims": 3}, "element_dims is 3; the layout has 2 packed dimensions"),
        ({"element_dims": -1}, "element_dims is -1; the layout has 2 packed dimensions"),
    ],
)
def test_what_is_no_layout_is_refused(values: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"shape": (4,), "packed": (2, 2), "element_dims": 1, "coefficients": ((2, 1),)}
    PackedLayout(**good)
    with refused(ProgramError, message):
        PackedLayout(**(good | values))


@pytest.mark.parametrize("key", ["shape", "packed", "element_dims", "coefficients"])
@pytest.mark.parametrize("value", [None, "12", 1.5, True, [True], [1.5], [[1, "2"]], {}])
def test_data_of_other_types_is_refused(key: str, value: object) -> None:
    data = blocked((3, 5), ((0, 2), (1, 4))).to_dict()
    with pytest.raises(ProgramError, match=r"^a layout "):
        PackedLayout.from_dict(data | {key: value})
    del data[key]
    with refused(ProgramError, f"a layout has no {key!r}"):
        PackedLayout.from_dict(data)

"""Tiles: which part of which tensor an instruction reads or writes."""

from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.records import replace
from accel.core.fault_causes import dram_element_bytes
from accel.core.instruction_access import dram_rows
from accel.core.isa import Alu, Gemm, Load, Memory, Store, Transfer
from accel.image.packed_layout import blocked
from accel.views.analyzed_run import AnalyzedRun, analyze_run
from accel.views.dram_map import MICRO_OPS, Tile, box_of_rows, merge_tiles
from accel.views.instruction_tiles import operands_of as work_of
from tests.compiler import gemms
from tests.views.runs import EPILOGUES, from_text, look

SIZES = [(24, 24, 32), (3, 9, 5), (17, 23, 9)]


def extent(found: np.ndarray, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The smallest box around elements given by their numbers, counted from one; zero is padding."""
    places = np.unravel_index(found[found > 0] - 1, shape)
    return tuple((int(axis.min()), int(axis.max())) for axis in places)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("config", ["tiny", "gemm8x8"])
def test_transfers_name_the_tiles_that_they_move(sizes: tuple[int, int, int], config: str) -> None:
    analyzed = look(*sizes, config=config)
    tensors = {t.name: t for t in analyzed.image.tensors}
    seen = Counter()
    for index, one in enumerate(analyzed.instructions):
        if not isinstance(one, Transfer) or one.memory == Memory.UOP:
            continue
        (tile,) = analyzed.operands[index].target
        tensor = tensors[tile.name]
        shape = tensor.layout.shape
        flat = tensor.layout.pack(np.arange(prod(shape)).reshape(shape) + 1).ravel()
        rows = dram_rows(one, analyzed.image.config)
        assert rows is not None
        first = rows.start - analyzed.image.config.mem_base - tensor.offset
        moved = np.concatenate([flat[first + y * rows.stride :][: rows.row_bytes] for y in range(rows.rows)])
        assert tile.box == extent(moved, shape)
        seen[tile.name, type(one)] += 1
    assert set(seen) == {("A", Load), ("B", Load), ("C", Store)}


@pytest.mark.parametrize("sizes", SIZES)
def test_gemms_name_the_tiles_that_they_multiply(sizes: tuple[int, int, int]) -> None:
    """All GEMMs together compute the whole matrix product, each multiply-accumulate once."""
    analyzed = look(*sizes)
    M, N, K = sizes
    done = np.zeros((M, N, K), dtype=np.int64)
    zeroed = np.zeros((M, N), dtype=np.int64)
    for one, work in zip(analyzed.instructions, analyzed.operands, strict=True):
        if not isinstance(one, Gemm):
            continue
        (m, n) = (slice(a, b + 1) for a, b in work.target[0].box)
        if one.reset:
            zeroed[m, n] += 1
            continue
        a, b = sorted(work.sources)
        assert (a.name, b.name) == ("A", "B")
        assert a.box[0] == work.target[0].box[0]
        assert b.box[1] == work.target[0].box[1]
        assert a.box[1] == b.box[0]
        done[m, n, slice(a.box[1][0], a.box[1][1] + 1)] += 1
    assert (done == 1).all()
    assert (zeroed == 1).all()


def two_products() -> AnalyzedRun:
    """Two matrix products in one program, with the tensor between them in DRAM."""
    m = accel.machine("gemm8x8")
    return analyze_run(accel.build(gemms.two_stages(m, 16, 8, 16, 8), m).run())


def test_a_tensor_between_two_stages_has_its_name() -> None:
    found = two_products()
    assert found.image.references is not None
    known = {t.name for t in found.image.tensors} | {"micro_ops", "code"}
    (between,) = {part.name for part in found.image.references.parts} - known
    kinds = {
        type(one) for one, w in zip(found.instructions, found.operands, strict=True) if between in str(w)
    }
    assert kinds == {Load, Store, Gemm}
    assert not any("dram" in str(w) for w in found.operands)


def test_names_without_provenance_are_equal_if_data_flow_determines_them() -> None:
    one = look(40, 24, 16, bias=True, shift=4)
    image = replace(one.image, provenance=None, references=None)
    other = AnalyzedRun(result=replace(one.result, image=image), activity=one.activity)
    assert one.image.provenance is not None
    assert other.names == one.names


def test_a_tensor_whose_tile_is_unknown_is_named() -> None:
    """No STORE reads these sums."""
    one = look(8, 8, 8)
    found = one.image.provenance
    assert found is not None
    statements = tuple(
        replace(s, tensor="X", reads=("Y", "B")) if s.kind == "intrinsic" else s for s in found.statements
    )
    image = replace(one.image, provenance=replace(found, statements=statements))
    order = range(len(one.instructions))
    nothing = [() for _ in order]
    works = work_of(image, nothing, order, one.dram_map)
    gemms = [w for w, i in zip(works, one.instructions, strict=True) if isinstance(i, Gemm)]
    assert {str(w) for w in gemms} == {"X from Y, B"}
    known = work_of(image, one.touches, order, one.dram_map)
    assert {
        str(w).partition("[")[0] for w, i in zip(known, one.instructions, strict=True) if isinstance(i, Gemm)
    } == {"C"}
    assert any(str(w).endswith(", Y") for w in known)


def test_the_epilogue_names_its_target_and_operands() -> None:
    analyzed = look(8, 8, 8, bias=True, shift=3)
    alu = [
        work
        for one, work in zip(analyzed.instructions, analyzed.operands, strict=True)
        if isinstance(one, Alu)
    ]
    assert alu
    assert {tile.name for work in alu for tile in work.target} == {"C"}
    assert {tile.name for work in analyzed.operands for tile in (*work.target, *work.sources)} >= {
        "bias",
        "C",
    }


def test_dram_without_tensors_is_named_by_region_or_address() -> None:
    analyzed = from_text(
        """
        .config tiny
        .region spare 0x4000 64
        LOAD.UOP  dram_base=0 y_size=1 x_size=1
        LOAD.ACC  dram_base=spare y_size=1 x_size=1
        LOAD.INP  dram_base=8 y_size=1 x_size=1
        LOAD.WGT  dram_base=8
        FINISH
        """
    )
    assert analyzed.names == [
        f"LOAD.UOP {MICRO_OPS}",
        "LOAD.ACC spare",
        "LOAD.INP dram[0x20:0x24]",
        "LOAD.WGT",
        "FINISH",
    ]


@pytest.mark.parametrize("sizes", SIZES)
def test_some_elements_of_a_transfer_have_the_tile_of_their_values(sizes: tuple[int, int, int]) -> None:
    analyzed = look(*sizes, bias=True)
    tensors = {t.name: t for t in analyzed.image.tensors}
    rng = np.random.default_rng(1)
    seen = set()
    for one in analyzed.instructions:
        if not isinstance(one, Transfer) or one.memory == Memory.UOP or not one.sram_elements:
            continue
        elements = np.flatnonzero(rng.random(one.sram_elements) < 0.4)
        if not len(elements):
            continue
        tile = analyzed.dram_map.tile_of_elements(one, one.sram_base + elements)
        assert tile is not None
        tensor = tensors[tile.name]
        shape = tensor.layout.shape
        flat = tensor.layout.pack(np.arange(prod(shape)).reshape(shape) + 1).ravel()
        size = dram_element_bytes(one, analyzed.image.config) // np.dtype(tensor.dtype).itemsize
        first = one.dram_base * size - tensor.offset // np.dtype(tensor.dtype).itemsize
        y, x = np.divmod(elements, one.width)
        starts = first + (y * one.x_stride + x) * size
        held = flat[(starts[:, None] + np.arange(size)).ravel()]
        if (held > 0).any():
            assert all(
                a <= c and d <= b for (a, b), (c, d) in zip(tile.box, extent(held, shape), strict=True)
            )
            if (held > 0).all():
                assert tile.box == extent(held, shape)
                seen.add(tile.name)
    assert {"A", "B"} & seen


def test_an_operand_is_the_tile_of_the_elements_that_are_read() -> None:
    analyzed = look(40, 64, 16, bias=True, shift=8)
    parts = [w for w in analyzed.operands if any(t.name == "bias" for t in w.sources)]
    whole = [w.target[0].box for w in analyzed.operands if w.target and w.target[0].name == "bias"]
    assert len(parts) > 1
    for work in parts:
        (bias,) = work.sources
        assert bias.box[0] == work.target[0].box[1]
        assert bias.box not in whole


@given(data=st.data())
def test_a_box_holds_all_moved_values(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=3)))
    element = (
        (0, data.draw(st.sampled_from((1, 2, 4)))),
        (len(shape) - 1, data.draw(st.sampled_from((1, 4)))),
    )
    layout = blocked(shape, element)
    size = prod(layout.packed)
    length = data.draw(st.integers(1, size))
    rows = data.draw(st.integers(1, 3))
    stride = data.draw(st.integers(0, max(0, (size - length) // rows)))
    first = data.draw(st.integers(0, size - length - stride * (rows - 1)))
    box = box_of_rows(layout, first, rows, length, stride)
    flat = layout.pack(np.arange(prod(shape)).reshape(shape) + 1).ravel()
    moved = np.concatenate([flat[first + y * stride :][:length] for y in range(rows)])
    if (moved > 0).any():
        exact = extent(moved, shape)
        assert all(a <= c and d <= b for (a, b), (c, d) in zip(box, exact, strict=True))
    assert all(0 <= a <= b < n for (a, b), n in zip(box, shape, strict=True))


def test_tiles_as_text() -> None:
    assert str(Tile("A", ((0, 7), (3, 3)))) == "A[0:8, 3]"
    assert str(Tile("spare", ())) == "spare"
    assert str(Tile("dram", ((16, 31),), "0x10..0x2f")) == "dram[0x10:0x20]"
    assert merge_tiles([Tile("A", ((0, 1),)), Tile("B", ((2, 2),)), Tile("A", ((4, 5),))]) == (
        Tile("A", ((0, 5),)),
        Tile("B", ((2, 2),)),
    )


def test_stores_name_their_requantization_parameters_and_residuals() -> None:
    """An element of PAR has 32 bytes, one of RES has 4. The last STORE reads the elements
    loaded last."""
    assert from_text(EPILOGUES).names[1:8] == [
        "LOAD.PAR dram[0x800:0x840]",
        "LOAD.RES dram[0x1000:0x1040]",
        "STORE.REQ dram[0x1f40:0x1f50] from dram[0x800:0x820]",
        "STORE.ADD dram[0x20d0:0x20f0] from dram[0x800:0x840], dram[0x1000:0x1020]",
        "LOAD.RES dram[0x1040:0x1060]",
        "STORE.ADD dram[0x2260:0x2280] from dram[0x820:0x840], dram[0x1020:0x1040]",
        "STORE.ADD dram[0x23f0:0x2410] from dram[0x800:0x820], dram[0x1040:0x1060]",
    ]

"""The last products of a program, cut up in the order in which they are stored."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.compiler.codegen.ending import cut_by, stored_early
from accel.compiler.target.machine import machine
from accel.compiler.target.registry import Emitted
from accel.core.isa import Gemm, Load, Loops, Mac, Memory, Store, StoreReq, Unit
from tests.compiler.running import steps
from tests.strategies import examples

CONFIG = machine("tiny-int8").config


def product(uops: list[tuple[int, int, int]], *, overwrite: bool = False, **loops: int) -> Emitted:
    kind = Mac(overwrite=True, uop_end=len(uops), **loops) if overwrite else Gemm(uop_end=len(uops), **loops)  # type: ignore[arg-type]
    return Emitted(kind, np.array(uops, dtype=np.int64))


def store(base: int, rows: int, row: int, **fields: int) -> Emitted:
    return Emitted(Store(memory=Memory.OUT, sram_base=base, y_size=rows, x_size=row, x_stride=row, **fields))  # type: ignore[arg-type]


def products(emitted: list[Emitted]) -> list[Emitted]:
    return [one for one in emitted if isinstance(one.instruction, Loops)]


def per_sum(emitted: list[Emitted]) -> dict[int, list[tuple[bool, tuple[int, int, int]]]]:
    """For each accumulator its products in order, and whether they overwrite."""
    found: dict[int, list[tuple[bool, tuple[int, int, int]]]] = {}
    for one in products(emitted):
        assert isinstance(one.instruction, Gemm | Mac)
        for step in steps([one]):
            found.setdefault(step[0], []).append((not one.instruction.accumulates, step))
    return found


def test_one_product_and_one_store_of_several_rows() -> None:
    """Rows of 4 sums, 4 apart, along the outer loop; two steps each."""
    tile = product(
        [(0, 0, 0), (0, 8, 3)],
        iter_out=3,
        iter_in=4,
        dst_factor_out=4,
        dst_factor_in=1,
        src_factor_in=1,
        wgt_factor_out=2,
    )
    found = stored_early([tile, store(0, 3, 4)])
    assert [one.instruction.mnemonic for one in found] == ["GEMM"] * 3 + ["STORE.OUT"] * 3
    assert per_sum(found) == per_sum([tile])
    for row, (one, out) in enumerate(zip(found[:3], found[3:], strict=True)):
        assert {dst for dst, _, _ in steps([one])} == set(range(4 * row, 4 * row + 4))
        assert out.instruction == replace(store(4 * row, 1, 4, dram_base=4 * row).instruction, x_stride=4)


def test_no_more_parts_than_tokens_are_counted() -> None:
    tile = product([(0, 0, 0)], iter_out=3, iter_in=4, dst_factor_out=4, dst_factor_in=1)
    whole = [tile, store(0, 3, 4)]
    assert stored_early(whole, 5) == whole
    assert len(stored_early(whole, 6)) == 6


def test_micro_ops_are_cut_too() -> None:
    tile = product([(4, 1, 1), (0, 2, 2), (4, 3, 3)], iter_in=4, dst_factor_in=1)
    found = stored_early([tile, store(0, 1, 4), store(4, 1, 4)])
    assert [one.uops.tolist() for one in products(found)] == [[[0, 2, 2]], [[4, 1, 1], [4, 3, 3]]]


def test_the_first_step_stays_the_first() -> None:
    first = product([(0, 0, 0)], overwrite=True, iter_out=2, iter_in=2, dst_factor_out=2, dst_factor_in=1)
    second = product([(0, 5, 5)], iter_out=2, iter_in=2, dst_factor_out=2, dst_factor_in=1)
    found = stored_early([first, second, store(0, 2, 2)])
    assert [one.instruction.mnemonic for one in products(found)] == ["MAC", "GEMM", "MAC", "GEMM"]
    assert per_sum(found) == per_sum([first, second])


def test_parameters_go_along_with_rows() -> None:
    tile = product([(0, 0, 0)], iter_out=2, iter_in=3, dst_factor_out=3, dst_factor_in=1)
    for flag in (True, False):
        finish = StoreReq(sram_base=0, dram_base=20, y_size=2, x_size=3, x_stride=7, par=5, par_y=flag)
        found = [one.instruction for one in stored_early([tile, Emitted(finish)])]
        assert found[2:] == [
            replace(finish, y_size=1),
            replace(finish, y_size=1, sram_base=3, dram_base=27, par=5 + flag),
        ]


def test_only_the_end_is_cut() -> None:
    """Each set of accumulators once; what cannot be cut stays as it is."""
    tile = product([(0, 0, 0)], iter_out=2, iter_in=2, dst_factor_out=2, dst_factor_in=1)
    other = product([(8, 0, 0)], iter_out=2, iter_in=2, dst_factor_out=2, dst_factor_in=1)
    load = Emitted(Load(memory=Memory.INP, x_size=1, y_size=1))
    turn = [load, tile, store(0, 2, 2), load, other, store(8, 2, 2)]
    found = stored_early([*turn, *turn])
    assert found[:6] == turn
    assert [one.instruction.mnemonic for one in found[6:12]] == [
        "LOAD.INP",
        *["GEMM"] * 2,
        *["STORE.OUT"] * 2,
        "LOAD.INP",
    ]
    mixed = product([(0, 0, 0)], iter_in=4, dst_factor_in=1)
    assert stored_early([mixed, store(0, 1, 3), store(3, 1, 1)])[1:] != [store(0, 1, 4)]
    crossing = product([(0, 0, 0), (1, 0, 0)], iter_out=2, iter_in=2, dst_factor_out=1, dst_factor_in=1)
    whole = [crossing, store(0, 2, 2)]
    assert stored_early(whole) == whole
    assert stored_early([]) == []
    assert stored_early([load]) == [load]


@examples(200)
@given(st.data())
def test_every_sum_has_its_products_in_order(data: st.DataObject) -> None:
    rows, row = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    emitted = []
    for _ in range(data.draw(st.integers(1, 3))):
        uops = [
            (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9)))
            for _ in range(data.draw(st.integers(1, 4)))
        ]
        loops = {
            name: data.draw(st.integers(0, 3))
            for name in ("dst_factor_out", "dst_factor_in", "src_factor_out", "wgt_factor_in")
        }
        counts = {name: data.draw(st.integers(1, 3)) for name in ("iter_out", "iter_in")}
        emitted.append(product(uops, overwrite=data.draw(st.booleans()), **loops, **counts))
    emitted.append(store(data.draw(st.integers(0, 2)), rows, row))
    found = stored_early(emitted)
    assert per_sum(found) == per_sum(emitted)


@pytest.mark.parametrize("name", ["vta-int8", "gemm8x8-int8"])
def test_a_program_ends_sooner(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = accel.gemm(256, 256, 128)
    program = accel.build(workload, name, vthreads=2)
    monkeypatch.setattr("accel.compiler.codegen.emit.stored_early", lambda emitted, _: list(emitted))
    before = accel.build(workload, name, vthreads=2)
    assert program.run(seed=1).mismatches == 0
    assert program.run(seed=1).cycles < before.run(seed=1).cycles
    kinds = [i.unit for i in program.instructions]
    assert kinds.count(Unit.STORE) > [i.unit for i in before.instructions].count(Unit.STORE)


def test_cut_along_two_dimensions_into_the_fewest_parts() -> None:
    """Two channels of fourteen rows of two; ranges end within both channels, between rows."""
    tile = product([(0, 0, 0), (1, 0, 0)], iter_out=2, iter_in=14, dst_factor_out=28, dst_factor_in=2)
    ranges = [(0, 20), (20, 40), (40, 56)]
    found = cut_by(tile, ranges, twice=True)
    assert [number for number, _ in found] == [0, 1, 1, 2]
    for number, one in found:
        assert all(ranges[number][0] <= dst < ranges[number][1] for dst, _, _ in steps([one]))
    assert sorted(steps([one for _, one in found])) == sorted(steps([tile]))

"""GEMM compared with the scalar interpreter: any micro-ops, then each vectorised path by name."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.core.config import Config
from accel.core.instruction_access import loop_shape
from accel.core.isa import Gemm, Mac, Products, UopArray
from accel.image.dram import Dram
from accel.sim.functional import gemm
from accel.sim.functional.executor import Executor
from accel.sim.functional.gemm import gemm_box
from accel.sim.functional.micro_op_patterns import Axis, Box, affine_box
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import Reference, assert_same_effect, assert_same_pads, signed
from tests.sim.functional.boxes import MACHINE, SECOND, any_box, box_instruction, random_pads, rows_of
from tests.strategies import examples, loops, micro_ops, seeded, small_machines

KINDS = list(product((0, 1), repeat=3))
"""The operands that an axis moves: dst, src, wgt."""


@examples(300)
@given(st.data())
def test_gemm_equals_the_scalar_interpreter(data: st.DataObject) -> None:
    config = data.draw(small_machines)
    instruction = data.draw(loops(config, gemm=True))
    pads = Scratchpads.random(config, data.draw(st.integers(0, 99)))
    pads.uop[:] = data.draw(micro_ops(config))
    assert_same_effect(config, pads, instruction)


PRODUCTS: list[tuple[Config, type[Products], dict[str, bool]]] = [
    (MACHINE, Gemm, {}),
    (SECOND, Gemm, {}),
    (SECOND, Mac, {}),
    (SECOND, Mac, {"overwrite": True}),
]


@pytest.mark.parametrize(("machine", "cls", "flags"), PRODUCTS)
@pytest.mark.parametrize("kinds", list(product(KINDS, repeat=2)), ids=str)
def test_a_box_of_any_kinds_of_axes_runs_vectorised(
    kinds: tuple[tuple[int, int, int], ...], machine: Config, cls: type[Products], flags: dict[str, bool]
) -> None:
    """Three axes: the first kind as an outer loop, the second as an inner loop and, with a negative stride,
    again as an axis of the micro-ops."""
    (d0, s0, w0), (d1, s1, w1) = kinds
    around = [Axis(2, (16 * d0, 2 * s0, w0)), Axis(3, (4 * d1, 3 * s1, 2 * w1))]
    rows = rows_of([Axis(4, (-d1, 2 * s1, -4 * w1))])
    instruction = box_instruction(cls, around, rows, **flags)
    box = affine_box(rows, loop_shape(instruction, machine))
    assert box is not None
    pads = random_pads(rows, machine=machine)
    reference = Reference(machine, pads, Dram.of(machine))
    assert reference.execute(instruction) is None
    matrix_product = gemm_box(box, machine, overwrite=bool(flags))
    assert matrix_product is not None
    matrix_product.on(pads).run()
    assert_same_pads(pads, reference.pads())


@examples(300)
@given(seeded(any_box, wgt=3), st.booleans(), st.integers(0, 9))
def test_boxes_whose_points_coincide_or_have_negative_strides(
    box: tuple[list[Axis], UopArray], reset: bool, seed: int
) -> None:
    around, rows = box
    assert_same_effect(MACHINE, random_pads(rows, seed), box_instruction(Gemm, around, rows, reset=reset))
    pads = random_pads(rows, seed, SECOND)
    assert_same_effect(SECOND, pads, box_instruction(Mac, around, rows, overwrite=reset))


def test_points_with_one_accumulator_take_the_general_path() -> None:
    rows = rows_of([Axis(3, (2, 1, 0)), Axis(3, (2, 0, 1))])
    box = affine_box(rows, loop_shape(Gemm(uop_end=9), MACHINE))
    assert box is not None
    assert gemm_box(box, MACHINE) is None


def test_operands_gathered_too_often_take_the_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of([Axis(2, (1, 1, 0)), Axis(2, (2, 0, 1))])
    box = affine_box(rows, loop_shape(Gemm(uop_end=4), MACHINE))
    assert box is not None
    assert gemm_box(box, MACHINE) is not None
    monkeypatch.setattr(gemm, "_MAX_GATHERED_VALUES", 15)
    assert gemm_box(box, MACHINE) is None


def test_sums_beyond_the_precision_of_float64_take_the_general_path() -> None:
    for times, exact in ((1 << 36, True), (1 << 38, False)):
        found = gemm_box(Box((0, 0, 0), (Axis(times, (0, 0, 0)),)), MACHINE)
        assert (found is not None) == exact


@pytest.mark.parametrize("shares", [(8, 8, 8, 8), (29, 1, 1, 1)], ids=["even", "uneven"])
def test_micro_ops_without_a_pattern(shares: tuple[int, ...]) -> None:
    """Micro-ops with the same wgt element are computed together, whether the groups have similar sizes or
    not."""
    rng = np.random.default_rng(5)
    rows = np.stack([rng.integers(0, 4, 32), rng.integers(0, 4, 32), np.repeat(np.arange(4), shares)], axis=1)
    rows = rng.permutation(rows)
    instruction = Gemm(uop_end=32)
    shape = loop_shape(instruction, MACHINE)
    assert affine_box(rows, shape) is None
    assert_same_effect(MACHINE, random_pads(rows), instruction)
    for overwrite in (False, True):
        pads = random_pads(rows, machine=SECOND)
        assert_same_effect(SECOND, pads, Mac(uop_end=32, overwrite=overwrite))


@pytest.mark.parametrize(("apart", "vectorised"), [(32, True), (2, False)], ids=["disjoint", "meeting"])
def test_a_mac_of_several_boxes_overwrites_in_order(apart: int, vectorised: bool) -> None:
    """Two lists of micro-ops in two loops. Where they coincide, one iteration overwrites the previous one."""
    rows = np.array([(n, n, 0) for n in range(4)] + [(apart + n, 5 - n, 1) for n in range(4)])
    instruction = Mac(
        uop_end=8, iter_out=3, iter_in=2, dst_factor_out=8, src_factor_out=2, src_factor_in=3, overwrite=True
    )
    shape = loop_shape(instruction, SECOND)
    assert affine_box(rows, shape) is None
    pads = random_pads(rows, machine=SECOND)
    executor = Executor(SECOND, Dram.of(SECOND), pads)
    assert bool(executor._analyze_valid(instruction, rows, shape).products) is vectorised
    assert_same_effect(SECOND, pads, instruction)


@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (1, 2), (3, 1), (3, 64), (1 << 13, 1 << 13)])
def test_sums_are_exact_beyond_the_precision_of_float32_and_int32(outer: int, inner: int) -> None:
    """All micro-ops have one accumulator: 512 odd products each time."""
    config = Config(batch=1, block_in=256, block_out=1, inp_bytes=512, wgt_bytes=512, acc_bytes=8)
    pads = Scratchpads.zeros(config)
    pads.inp[...] = -127
    pads.wgt[...] = -127
    pads.inp[1, 0, 0] = -126
    pads.uop[:2] = 0, 1 << config.acc_address_bits
    instruction = Gemm(uop_end=2, iter_out=outer, iter_in=inner)
    assert Executor(config, Dram.of(config), pads).execute(instruction) is None
    total = outer * inner * (511 * 127 * 127 + 126 * 127)
    assert pads.acc.ravel().tolist() == [signed(total, 32), 0]


@pytest.mark.parametrize("cls", [Gemm, Mac])
@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (1, 2), (3, 1), (3, 64), (1 << 13, 1 << 13)])
def test_sums_of_nine_bits_are_exact(outer: int, inner: int, cls: type[Products]) -> None:
    """The largest products of machines with ``post=1``. float32 sums only half of their
    number exactly."""
    config = Config(batch=1, block_in=256, block_out=1, inp_bytes=512, wgt_bytes=512, acc_bytes=8, post=1)
    pads = Scratchpads.zeros(config)
    pads.inp[...] = -256
    pads.wgt[...] = -127
    pads.inp[1, 0, 0] = -255
    pads.uop[:2] = 0, 1 << config.acc_address_bits
    instruction = cls(uop_end=2, iter_out=outer, iter_in=inner)
    assert Executor(config, Dram.of(config), pads).execute(instruction) is None
    total = outer * inner * (511 * 256 * 127 + 255 * 127)
    assert pads.acc.ravel().tolist() == [signed(total, 32), 0]

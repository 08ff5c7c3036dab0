"""Depthwise MACs compared with the scalar interpreter: any micro-ops, then boxes of them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.core.config import NAMED, Config
from accel.core.instruction_access import loop_shape
from accel.core.isa import Mac, SetAcc, UopArray
from accel.image.dram import Dram
from accel.sim.functional.depthwise import depthwise_box
from accel.sim.functional.executor import Executor
from accel.sim.functional.micro_op_patterns import Axis, affine_box
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import Reference, assert_same_pads
from tests.sim.functional.boxes import any_box, box_instruction, random_pads, rows_of
from tests.strategies import examples, micro_ops, random_loops, random_taps, seeded

TINY = NAMED["tiny-int8"]
NO_LOOPS = [Axis(1, (0, 0, 0))] * 2
WIDE = Config(
    batch=2, block_in=4, block_out=4, inp_bytes=512, wgt_bytes=1024, acc_bytes=2048, post=1, inp_banks=8
)


def assert_same_run(config: Config, pads: Scratchpads, setting: SetAcc, mac: Mac) -> None:
    """The executor and the interpreter agree on a MAC after a SET.ACC."""
    reference = Reference(config, pads, Dram.of(config))
    executor = Executor(config, Dram.of(config), pads)
    for one in (setting, mac):
        expected, found = reference.execute(one), executor.execute(one)
        assert (None if found is None else (found[0], found[1].cause.label)) == expected
    assert_same_pads(pads, reference.pads())


def depthwise(axes: list[Axis], rows: UopArray, *, overwrite: bool = False) -> Mac:
    mac = box_instruction(Mac, axes, rows, overwrite=overwrite, depthwise=True)
    assert isinstance(mac, Mac)
    return mac


def behind_taps(rng: Random, config: Config) -> tuple[SetAcc, Mac]:
    loops = random_loops(rng, config, gemm=True)
    while not isinstance(loops, Mac) or not loops.depthwise:
        loops = random_loops(rng, config, gemm=True)
    return random_taps(rng, config), loops


@pytest.mark.parametrize("config", [TINY, WIDE], ids=["tiny", "wide"])
@examples(150)
@given(st.data())
def test_depthwise_macs_equal_the_scalar_interpreter(config: Config, data: st.DataObject) -> None:
    setting, mac = data.draw(seeded(behind_taps, config))
    pads = Scratchpads.random(config, data.draw(st.integers(0, 99)))
    pads.uop[:] = data.draw(micro_ops(config))
    assert_same_run(config, pads, setting, mac)


@examples(200)
@given(seeded(any_box, wgt=3), st.booleans(), st.integers(0, 99))
def test_boxes_whose_points_coincide_or_have_negative_strides(
    box: tuple[list[Axis], UopArray], overwrite: bool, seed: int
) -> None:
    around, rows = box
    mac = depthwise(around, rows, overwrite=overwrite)
    assert_same_run(WIDE, random_pads(rows, seed, WIDE), random_taps(Random(seed), WIDE), mac)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_convolution_runs_vectorised(overwrite: bool) -> None:
    """Two rows of three taps, for a strip of accumulators whose inputs are two elements apart."""
    rows = rows_of([Axis(4, (1, 2, 0)), Axis(2, (0, 9, 1))])
    mac = depthwise(NO_LOOPS, rows, overwrite=overwrite)
    shape = loop_shape(mac, WIDE, SetAcc(taps=3, step=1))
    box = affine_box(rows, shape)
    assert box is not None
    found = depthwise_box(box, shape, overwrite=overwrite)
    assert found is not None
    pads = random_pads(rows, machine=WIDE)
    reference = Reference(WIDE, pads, Dram.of(WIDE))
    for one in (SetAcc(taps=3, step=1), mac):
        assert reference.execute(one) is None
    found.on(pads).run()
    assert_same_pads(pads, reference.pads())


def test_coinciding_accumulators_take_the_general_path() -> None:
    rows = rows_of([Axis(3, (2, 1, 0)), Axis(3, (2, 0, 1))])
    mac = depthwise(NO_LOOPS, rows)
    shape = loop_shape(mac, WIDE, SetAcc(taps=1))
    box = affine_box(rows, shape)
    assert box is not None
    assert depthwise_box(box, shape, overwrite=False) is None

"""Default schedules of convolutions: close to the bound, few instructions, as predicted."""

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_planner import CONV_PLANNER
from accel.core.isa import Alu, Gemm, Load, Loops, Memory
from accel.sim.timing.timing_model import simulate_timing
from tests.compiler.running import as_it_is
from tests.expect import refused

LAYERS = {
    "C2": ((56, 64, 64, 3, 1), 491_072),
    "C6": ((28, 128, 256, 3, 2), 227_712),
    "C7": ((28, 128, 256, 1, 2), 37_632),
    "C11": ((7, 512, 512, 3, 1), 375_936),
}
"""Layers of ResNet-18: (size, channels in and out, kernel, stride), and slots on ``vta``."""


def layer(name: str) -> accel.Workload:
    size, ic, oc, kernel, stride = LAYERS[name][0]
    return accel.conv2d(
        1, ic, size, size, oc, kernel, stride=stride, padding=kernel // 2, bias=True, relu=True, shift=8
    )


def cycles(program: accel.Program) -> int:
    return simulate_timing(program.instructions, program.config, address=program.code_offset).cycles


@pytest.mark.parametrize("name", LAYERS)
def test_cycles_are_few_and_as_predicted(name: str) -> None:
    """The compute unit almost never waits."""
    workload, config = layer(name), accel.machine("vta").config
    slots = LAYERS[name][1]
    assert conv_shape(workload, config).slots == slots
    found = find_candidates(workload, config)
    taken = cycles(as_it_is(workload, "vta"))
    assert slots < taken < slots * (1.011 if name != "C7" else 1.08)
    assert found[0].prediction.cycles == pytest.approx(taken, rel=0.004 if name != "C7" else 0.01)
    assert found[0].prediction.bound == "compute"


@pytest.mark.parametrize("name", LAYERS)
def test_a_quick_search_finds_a_plan_near_the_best(name: str) -> None:
    workload, config = layer(name), accel.machine("vta").config
    best = find_candidates(workload, config)
    quick = find_candidates(workload, config, quick=True)
    assert len(quick) < len(best)
    assert quick[0].prediction.cycles < best[0].prediction.cycles * 1.05
    assert all(CONV_PLANNER.fits(conv_shape(workload, config), config, one.plan) for one in quick)


def test_predictions_include_a_residual() -> None:
    """With a product, the GEMM core adds it in the slots of one pass.

    Otherwise the compute unit loads it, which takes the beats, and a latency for each tile.
    """
    workload = accel.conv2d(1, 64, 56, 56, 64, 3, padding=1, bias=True, residual=True, relu=True, shift=8)
    machine = accel.machine("vta")
    found = find_candidates(workload, machine.config)
    slots, moved = 491_072 + 12_544, 56 * 56 * 64 // 8
    for product, beats in ((True, 0), (False, moved)):
        best = next(one for one in found if one.plan.residual_product is product)
        program = accel.build(CONV_PLANNER.schedule(workload, machine, best.plan), machine)
        tiles = sum(isinstance(i, Load) and i.memory == Memory.ACC_8BIT for i in program.instructions)
        taken = cycles(program)
        assert bool(tiles) is not product
        assert slots + beats + tiles * machine.config.read_latency < taken < (slots + beats) * 1.011
        assert best.prediction.cycles == pytest.approx(taken, rel=0.004)
    assert found[0].plan.residual_product


def test_threads_hide_latency() -> None:
    one, two = (cycles(as_it_is(layer("C6"), "vta", vthreads=n)) for n in (1, 2))
    assert two < 0.97 * one


def test_products_with_padding_are_not_executed() -> None:
    program = as_it_is(layer("C11"), "vta")
    loops = [i for i in program.instructions if isinstance(i, Loops)]
    gemms = sum(i.uop_count for i in loops if isinstance(i, Gemm) and not i.reset)
    passes = sum(i.uop_count for i in loops if isinstance(i, Alu))
    assert gemms == 32 * 32 * (3 * 7 - 2) ** 2
    assert passes == 4 * 32 * 49
    assert sum(isinstance(i, Gemm) and i.reset for i in loops) == 1


def test_gemms_and_loads_are_few_and_large() -> None:
    """A GEMM has at least 512 slots on average, a LOAD of inputs 128 elements. Each weight
    is loaded once."""
    program = as_it_is(layer("C2"), "vta")
    steps = [s for s in program.schedule().steps if s["op"] == "split" and s["names"][0] in ("co", "do")]
    loads = {
        memory: [i for i in program.instructions if isinstance(i, Load) and i.memory == memory]
        for memory in (Memory.UOP, Memory.ACC, Memory.INP, Memory.WGT)
    }
    gemms = [i for i in program.instructions if isinstance(i, Gemm) and not i.reset]
    assert steps
    assert len(loads[Memory.UOP]) == len(loads[Memory.ACC]) == 1
    weights = sum(i.sram_elements for i in loads[Memory.WGT])
    assert weights * program.config.wgt_element_bytes == 64 * 64 * 3 * 3
    assert sum(i.uop_count * i.iter_out * i.iter_in for i in gemms) >= 512 * len(gemms)
    inputs = loads[Memory.INP]
    assert sum(i.sram_elements for i in inputs) >= 128 * len(inputs)


# --- errors --------------------------------------------------------------------------------------------


def test_more_threads_than_fit() -> None:
    """Scratchpads hold the weights of 42 threads. The second layer has 8 tiles."""
    for outputs, most in ((512, 42), (64, 8)):
        workload = accel.conv2d(1, 4, 8, 8, outputs, 3, padding=1)
        for threads in (most + 1, 200, 10**9):
            message = f"{threads} virtual threads do not fit configuration 'tiny'; at most {most} do"
            with refused(ScheduleError, message):
                as_it_is(workload, "tiny", vthreads=threads)
        assert as_it_is(workload, "tiny", vthreads=most).vthreads == most


def test_kernels_that_do_not_fit() -> None:
    workload = accel.conv2d(1, 1, 1, 200, 1, (1, 200))
    message = (
        "not even the smallest tiles of this convolution fit configuration 'tiny'; they need 800 bytes of "
        "inp (inp_bytes is 512) and 6400 bytes of wgt (wgt_bytes is 4096)"
    )
    with refused(ScheduleError, message):
        as_it_is(workload, "tiny")
    with refused(ScheduleError, message):
        as_it_is(workload, "tiny", vthreads=2)

"""Predictions for matrix products compared with simulated programs: fit, traffic, slots
and cycles."""

from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.cycle_estimate import estimate_cycles
from accel.compiler.plans.gemm_model import GemmShape, gemm_shape
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_planner import GEMM_PLANNER
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.plans.operand_traffic import OperandTraffic
from accel.compiler.plans.plan_candidate import Prediction
from accel.compiler.plans.plan_table import PlanTable
from accel.compiler.plans.tile_sizes import TileSizes
from accel.core.instruction_access import dram_rows
from accel.core.isa import Gemm, Load, Loops, Memory
from accel.image.image import Image
from accel.sim.timing.timing_model import simulate_timing
from tests.strategies import examples
from tests.thorough import also, diagonal


class Case(NamedTuple):
    """A matrix product, a machine and a plan."""

    workload: accel.Workload
    machine: accel.Machine
    plan: GemmPlan

    @property
    def shape(self) -> GemmShape:
        return gemm_shape(self.workload, self.machine.config)

    @property
    def fits(self) -> bool:
        return GEMM_PLANNER.fits(self.shape, self.machine.config, self.plan)

    @property
    def sizes(self) -> TileSizes:
        return TileSizes(self.shape, self.machine.config, PlanTable.from_rows([self.plan.row]))

    @property
    def threaded_iterations(self) -> int:
        """Iterations of the loop that threads share."""
        shape, plan = self.shape, self.plan
        size, part = {
            ("depth", "rows"): (shape.depth, plan.depth),
            ("depth", "columns"): (shape.depth, plan.depth),
            ("inner", "rows"): (shape.channels, plan.columns),
            ("inner", "columns"): (shape.rows, plan.rows),
        }[plan.thread_axis, plan.outer]
        return -(-size // part)

    def compiled(self) -> Image:
        return compile_schedule(gemm_schedule(self.workload, self.machine, self.plan), self.machine.config)


SHIFT_MACHINES = ("tiny", "gemm8x8", "vta", "ecp5")
POST_MACHINES = ("tiny-int8", "gemm8x8-int8", "vta-int8", "ecp5-int8")
"""Machines whose store unit requantizes (``post=1``)."""


def any_case(seed: int, names: tuple[str, ...] = SHIFT_MACHINES) -> Case:
    rng = Random(seed)
    machine = accel.machine(
        rng.choice(names),
        read_latency=rng.choice((16, 64, 200)),
        bus_bits=rng.choice((64, 128)),
    )
    config = machine.config
    M, N, K = (
        rng.randint(1, rng.choice((1, 6, 20)) * width)
        for width in (config.batch, config.block_out, config.block_in)
    )
    transposed = (rng.random() < 0.5, rng.random() < 0.5)
    bias, relu, shift = rng.random() < 0.5, rng.random() < 0.3, rng.choice((None, 0, 6))
    if seed % 4:
        workload = accel.gemm(
            M,
            N,
            K,
            transpose_a=transposed[0],
            transpose_b=transposed[1],
            bias=bias,
            relu=relu,
            shift=shift,
        )
    else:
        workload = accel.dense(M, K, N, bias=bias, residual=True, relu=relu, shift=shift)
    shape = gemm_shape(workload, config)
    plan = GemmPlan(
        rows=rng.randint(1, shape.rows),
        columns=rng.randint(1, shape.channels),
        depth=rng.randint(1, shape.depth),
        threads=rng.choice((1, 1, 2, 3, 4)),
        thread_axis=rng.choice(("inner", "depth")),
        outer=rng.choice(("rows", "columns")),
    )
    return Case(workload, machine, plan)


@examples(60)
@given(st.builds(any_case, st.integers(0, 1 << 32), st.sampled_from([SHIFT_MACHINES, POST_MACHINES])))
def test_fit_and_traffic_are_exact(case: Case) -> None:
    """A plan with more threads than iterations of their loop compiles with fewer buffers than it claims."""
    fits = case.fits
    try:
        image = case.compiled()
    except ScheduleError:
        assert not fits
        return
    assert fits or case.threaded_iterations < case.plan.threads
    if case.threaded_iterations >= case.plan.threads:
        loaded = 0
        for instruction in image.instructions:
            if isinstance(instruction, Load) and instruction.memory in (Memory.INP, Memory.WGT):
                rows = dram_rows(instruction, image.config)
                assert rows is not None
                loaded += rows.rows * rows.row_bytes
        assert OperandTraffic(case.sizes).read_bytes()[0] == loaded
    number = case.sizes.instructions()[0]
    assert 0.6 * number - 8 < len(image.instructions)
    if not image.config.post:  # with post=1, the last tiles are stored in pieces
        assert len(image.instructions) < 1.6 * number + 8


def measured(cases: list[Case]) -> tuple[np.ndarray, np.ndarray]:
    predicted, simulated = [], []
    for case in cases:
        image = case.compiled()
        run = simulate_timing(image.instructions, image.config, address=image.code_offset)
        predicted.append(GEMM_PLANNER.predict(case.shape, case.machine.config, case.plan).cycles)
        simulated.append(run.cycles)
    return np.array(predicted), np.array(simulated, dtype=float)


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(float)


def test_predictions_are_close_for_all_kinds_of_plans() -> None:
    cases = []
    for seed in range(10_000):
        case = any_case(seed)
        if case.threaded_iterations >= case.plan.threads and case.fits:
            cases.append(case)
        if len(cases) == 80:
            break
    predicted, simulated = measured(cases)
    ratio = predicted / simulated
    assert 0.95 < np.median(ratio) < 1.05
    assert np.quantile(abs(ratio - 1), 0.8) < 0.1
    assert abs(ratio - 1).max() < 0.35
    assert np.corrcoef(ranks(predicted), ranks(simulated))[0, 1] > 0.99


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("name", "sizes"), [("gemm8x8", (256, 256, 256)), ("vta", (256, 256, 256)), ("tiny", (64, 96, 128))]
)
def test_extrapolation_of_long_programs_is_close(
    name: str, sizes: tuple[int, int, int], threads: int
) -> None:
    plan = GemmPlan(rows=4, columns=4, depth=4, threads=threads, thread_axis="inner", outer="rows")
    predicted, simulated = measured([Case(accel.gemm(*sizes, shift=9), accel.machine(name), plan)])
    assert abs(predicted[0] / simulated[0] - 1) < 0.05


@pytest.mark.parametrize(
    ("busy", "bound"),
    [
        ((90, 20, 10), "compute"),
        ((20, 90, 10), "loads"),
        ((10, 20, 90), "stores"),
        ((80, 80, 80), "latency"),
    ],
)
def test_the_limiting_resource(busy: tuple[float, float, float], bound: str) -> None:
    compute, load, store = busy
    assert Prediction(cycles=100, compute=compute, load=load, store=store).bound == bound


def test_plans_as_text() -> None:
    plan = GemmPlan(rows=2, columns=3, depth=4, threads=2, thread_axis="inner", outer="rows")
    assert str(plan) == "tiles of 2 x 3 x 4 blocks, rows outermost, 2 threads along columns"
    plan = GemmPlan(rows=2, columns=3, depth=4, threads=4, thread_axis="depth", outer="columns")
    assert str(plan) == "tiles of 2 x 3 x 4 blocks, columns outermost, 4 threads along depth"
    plan = GemmPlan(rows=1, columns=1, depth=1, threads=1, thread_axis="inner", outer="columns")
    assert str(plan) == "tiles of 1 x 1 x 1 blocks, columns outermost"
    assert GemmPlan.from_row(plan.row) == plan


# --- work --------------------------------------------------------------------------------------------

EPILOGUES: list[dict[str, Any]] = [
    {},
    {"shift": 6},
    {"bias": True},
    {"shift": 6, "bias": True},
    {"shift": 6, "bias": True, "relu": True, "residual": True},
]


@pytest.mark.parametrize("name", ["vta", also("gemm8x8")])
@pytest.mark.parametrize("options", EPILOGUES, ids=str)
def test_slots_are_exact(name: str, options: dict[str, Any]) -> None:
    """An additional or missing pass changes the number, except the clearing before a folded bias."""
    machine = accel.machine(name)
    workload = accel.gemm(96, 80, 64, **options)
    folds_bias = workload.epilogue.folds(64)
    for candidate in find_candidates(workload, machine.config)[::25]:
        image = Case(workload, machine, candidate.plan).compiled()
        loops = [one for one in image.instructions if isinstance(one, Loops)]
        resets = [one.uop_count for one in loops if isinstance(one, Gemm) and one.reset]
        executed = sum(one.uop_count for one in loops) - folds_bias * sum(resets)
        assert candidate.prediction.compute == executed


@pytest.mark.parametrize(
    ("name", "options"),
    diagonal(["vta", "gemm8x8"], [{}, {"shift": 6}, {"shift": 6, "residual": True}]),
    ids=str,
)
def test_the_estimate_is_close_for_the_best_plan(name: str, options: dict[str, Any]) -> None:
    """The error is less than half a pass over the result."""
    workload, config = accel.gemm(512, 256, 64, **options), accel.machine(name).config
    plan = find_candidates(workload, config)[0].plan
    shape = replace(gemm_shape(workload, config), residual_product=plan.residual_product)
    table = PlanTable.from_rows([plan.row])
    estimate = estimate_cycles(TileSizes(shape, config, table))[0]
    taken = accel.build(workload, name).run(check=False).cycles
    assert shape.rows * shape.channels / taken > 2 * 0.025
    assert estimate == pytest.approx(taken, rel=0.025)


@pytest.mark.parametrize("first", [0, also(25)])
@pytest.mark.parametrize(
    ("name", "options"),
    diagonal(POST_MACHINES, EPILOGUES),
    ids=str,
)
def test_slots_are_exact_if_the_store_unit_requantizes(
    name: str, options: dict[str, Any], first: int
) -> None:
    machine = accel.machine(name)
    workload = accel.gemm(96, 80, 64, **options)
    shape = gemm_shape(workload, machine.config)
    assert shape.reset_passes == 0
    assert shape.passes == (0 if shape.epilogue_in_store else bool(options))
    for candidate in find_candidates(workload, machine.config)[first::50]:
        image = Case(workload, machine, candidate.plan).compiled()
        executed = sum(one.uop_count for one in image.instructions if isinstance(one, Loops))
        assert round(candidate.prediction.compute) == executed


@pytest.mark.parametrize("name", POST_MACHINES)
@pytest.mark.parametrize("sizes", [(96, 80, 64), also((64, 600, 40)), also((40, 64, 300))], ids=str)
def test_predictions_of_products_with_scales_are_close(name: str, sizes: tuple[int, int, int]) -> None:
    workload = accel.gemm(*sizes, bias=True, quantized=accel.Quantized(scale=[0.01] * sizes[1]))
    machine = accel.machine(name)
    best = find_candidates(workload, machine.config)[0]
    predicted, simulated = measured([Case(workload, machine, best.plan)])
    assert predicted[0] == pytest.approx(simulated[0], rel=0.065, abs=150)


def test_reloads_of_weights_in_the_steady_state_are_predicted() -> None:
    """The weights of the next columns are loaded at once, in steps that the model does not execute."""
    machine = accel.machine("vta", block_in=32, block_out=32, bus_bits=64)
    workload = accel.gemm(160, 512, 512, shift=6, bias=True)
    plan = GemmPlan(rows=8, columns=8, depth=2, threads=8, thread_axis="depth", outer="columns")
    shape = GEMM_PLANNER.features(workload, machine.config)
    taken = accel.build(GEMM_PLANNER.schedule(workload, machine, plan), machine).run(check=False).cycles
    assert GEMM_PLANNER.predict(shape, machine.config, plan).cycles == pytest.approx(taken, rel=0.01)


def test_a_tile_waits_until_pieces_of_the_previous_one_are_stored() -> None:
    """Threads along the depth share accumulators: each of the 16 tiles waits for the latency of writes, while
    the computation of its other pieces continues."""
    plan = GemmPlan(rows=16, columns=4, depth=2, threads=2, thread_axis="depth", outer="rows")
    found = []
    for latency in (16, 500):
        machine = accel.machine("vta", write_latency=latency)
        predicted, simulated = measured([Case(accel.gemm(128, 128, 128, shift=6), machine, plan)])
        found.append((predicted[0], simulated[0]))
    more = [after - before for before, after in zip(*found, strict=True)]
    assert 15 * 484 / 2 < more[1] < 15 * 484
    assert more[0] == pytest.approx(more[1], rel=0.3)

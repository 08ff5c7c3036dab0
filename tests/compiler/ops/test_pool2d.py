"""Pooling: results on every machine, with default and with own schedules."""

from contextlib import suppress
from itertools import product
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ScheduleError, ShapeError, TensorizeError
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.scalar_expressions import INT32_MIN, Const, Guarded, maximum
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.ops.integer_mean import SURE_MEAN, Mean, is_mean, mean_of
from accel.compiler.plans.pool_planner import POOL_PLANNER
from accel.core.config import Config
from accel.core.isa import Alu, Gemm, Load, Loops, Memory
from accel.te import Schedule
from tests.compiler.pools import maxima, pools, some_data, sums_and_counts
from tests.compiler.verdicts import program_is_right, stages_are_right
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import diagonal

CONFIGS = ("vta", "gemm8x8", "tiny")
SMALL = Config(
    name="small", batch=1, block_in=2, block_out=4, uop_bytes=256, inp_bytes=64, wgt_bytes=64, acc_bytes=1024
)


def means(workload: accel.Workload, data: np.ndarray) -> np.ndarray:
    """Return the means by the workload's own factors, and check that each is within 1 of the exact mean."""
    mean = workload.epilogue
    assert isinstance(mean, Mean)
    sums, counts = sums_and_counts(workload, data)
    factors = np.vectorize(mean.factors.__getitem__)(counts)
    found = ((sums + mean.offset) * factors >> mean.shift).astype(np.int8)
    assert (np.abs(found * counts - sums) <= counts).all()
    return found


def right(workload: accel.Workload, machine: accel.Machine, seed: int, threads: int | None = None) -> None:
    """Compare with numpy, in any order of execution."""
    data = some_data(workload, seed)
    want = maxima(workload, data) if workload.name == "max_pool2d" else means(workload, data)
    program_is_right(accel.build(workload, machine, vthreads=threads), {"data": data}, want)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (5, 1)], ids=str)
def test_a_picture_smaller_than_the_stride(sizes: tuple[int, int]) -> None:
    """It has no elements at some remainders modulo the stride."""
    workload = accel.max_pool2d(1, 1, *sizes, 2, stride=2, padding=(0, 0, 1, 1))
    right(workload, accel.machine("gemm8x8"), 0)


def test_a_tile_without_elements_of_a_remainder() -> None:
    """The first column of outputs reads padding alone."""
    workload = accel.max_pool2d(1, 8, 4, 2, (3, 2), stride=(3, 2), padding=(0, 0, 2, 0))
    right(workload, accel.machine("gemm8x8"), 0)


@examples(60)
@given(st.data())
def test_any_pooling_on_any_machine(data: st.DataObject) -> None:
    machine = accel.machine(data.draw(st.sampled_from(CONFIGS)))
    workload = data.draw(pools(machine.config, data.draw(st.sampled_from(["max", "average"]))))
    right(workload, machine, data.draw(st.integers(0, 99)))


@examples(40)
@given(st.data())
def test_any_pooling_on_a_machine_with_little_memory(data: st.DataObject) -> None:
    workload = data.draw(pools(SMALL, data.draw(st.sampled_from(["max", "average"])), 3))
    seed = data.draw(st.integers(0, 99))
    sizes = workload.parameters
    if workload.name == "max_pool2d" and sizes["H"] * sizes["W"] > SMALL.acc_depth // 2:
        with suppress(ScheduleError):  # windows that start in the padding or in the input need whole rows
            right(workload, accel.machine(SMALL), seed)
        return
    right(workload, accel.machine(SMALL), seed)


@pytest.mark.parametrize(("threads", "name"), diagonal([1, 2, 3], CONFIGS))
def test_threads(name: str, threads: int) -> None:
    shape = 1, 40, 9, 8, 3
    for workload in (
        accel.max_pool2d(*shape, stride=2, padding=1),
        accel.max_pool2d(*shape, stride=1, padding=1),
        accel.avg_pool2d(*shape, stride=2, padding=1),
        accel.global_avg_pool2d(*shape[:4]),
    ):
        right(workload, accel.machine(name), 0, threads)


@examples(20)
@given(st.data())
def test_every_stage_of_the_compiler_computes_the_same(data: st.DataObject) -> None:
    workload = data.draw(pools(SMALL, data.draw(st.sampled_from(["max", "average"]))))
    schedule = accel.build(workload, accel.machine(SMALL)).schedule()
    inputs = {"data": some_data(workload, 1)}
    want = te.evaluate([workload.output], inputs)["out"]
    stages_are_right(schedule, inputs, want)


# --- means -----------------------------------------------------------------------------------------------


@given(st.integers(1, 70), st.integers(0, 40000), st.integers(0, 40), st.integers(0, 31), st.integers(-3, 3))
def test_valid_means(count: int, factor: int, offset: int, shift: int, near: int) -> None:
    """Compare with all possible sums."""
    for one in (factor, (1 << shift) // count + near):
        sums = np.arange(-128 * count, 127 * count + 1, dtype=np.int64)
        products = (sums + offset) * one
        fits = (
            1 <= one < 1 << 15
            and offset < 1 << 15
            and products.min() >= -(1 << 31)
            and products.max() < 1 << 31
        )
        means = products >> shift
        close = (np.abs(means * count - sums) <= count).all() and means.min() >= -128 and means.max() <= 127
        assert is_mean(count, one, offset, shift) == (fits and close)


@pytest.mark.parametrize("count", [1, 2, 3, 9, 49, 64, 196, 197, 784, 112 * 112])
def test_a_mean_of_many_values(count: int) -> None:
    mean = mean_of([count])
    assert is_mean(count, mean.factors[count], mean.offset, mean.shift)
    assert (mean.offset == 0) == (count < 197)
    assert mean.is_empty == (count == 1)
    if count & (count - 1) == 0:
        assert (mean.factors[count], 1 << mean.shift) == (1, count)
    assert mean.passes(1) == 1 + (mean.factors[count] > 1) + (mean.shift > 0) + (mean.offset > 0)


@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("window", [(7, 1), (13, 1), (7, 7)])
def test_means_of_the_ends_of_int8_do_not_wrap(window: tuple[int, int], value: int) -> None:
    program = accel.build(accel.global_avg_pool2d(1, 3, *window), "tiny")
    out = program.run({"data": np.full((1, 3, *window), value, np.int8)}).outputs["out"]
    assert (abs(out.astype(int) - value) <= 1).all()


def test_means_of_several_numbers_with_an_offset() -> None:
    workload = accel.avg_pool2d(1, 3, 7, 7, 7, stride=3, padding=3)
    assert isinstance(workload.epilogue, Mean)
    assert workload.epilogue.offset == 1
    for seed in range(4):
        right(workload, accel.machine("tiny"), seed)


def test_means_of_several_numbers_share_a_shift() -> None:
    mean = mean_of([9, 6, 4, 6])
    assert (sorted(mean.factors), mean.offset, mean.shift) == ([4, 6, 9], 0, 16)
    assert str(mean) == ("(sum * 7281) >> 16 of 9, (sum * 10922) >> 16 of 6, (sum * 16384) >> 16 of 4")
    assert str(mean_of([784])) == "((sum + 392) * 2675) >> 21 of 784"


def test_means_without_factors() -> None:
    message = (
        "no 16-bit factors with one common shift give the means of 1, 300 values within 1; "
        "use fewer values, or the same number in every window"
    )
    with refused(ShapeError, message):
        mean_of([1, 300])


@pytest.mark.parametrize("count", [65_537, 90_000, SURE_MEAN - 1, SURE_MEAN, 1 << 17])
def test_means_of_very_many_values(count: int) -> None:
    """Half of this number exceeds an offset of 16 bits."""
    mean = mean_of([count])
    assert is_mean(count, mean.factors[count], mean.offset, mean.shift)
    assert mean.offset in (0, 1, (1 << 15) - 1)


def test_some_means_of_more_values_have_no_factor() -> None:
    message = (
        f"no offset and 16-bit factor give the mean of {SURE_MEAN + 1} values within 1 without overflowing "
        f"int32; up to {SURE_MEAN} values some always do"
    )
    with refused(ShapeError, message):
        mean_of([SURE_MEAN + 1])


def test_a_mean_over_a_large_input() -> None:
    workload = accel.global_avg_pool2d(1, 3, 257, 256)
    data = np.random.default_rng(5).integers(-128, 128, (1, 3, 257, 256)).astype(np.int8)
    data[0, 0], data[0, 1] = -128, 127
    run = accel.build(workload, "vta").run({"data": data}, backend="functional")
    assert run.mismatches == 0
    exact = data.mean(axis=(2, 3), keepdims=True)
    assert (np.abs(run.outputs["out"] - exact) <= 1).all()


def test_a_mean_of_one_value_is_a_copy() -> None:
    workload = accel.avg_pool2d(1, 20, 6, 6, 1, stride=2)
    assert workload.output is workload.sums
    right(workload, accel.machine("tiny"), 1)


# --- cycles ----------------------------------------------------------------------------------------------


def passes(program: accel.Program) -> int:
    return sum(i.uop_count for i in program.instructions if isinstance(i, Loops))


@pytest.mark.parametrize(
    ("arguments", "least", "share"),
    [
        (((1, 512, 7, 7), (7, 7), {}), 512 * 49 // 8, 1.21),  # loads
        (((1, 64, 56, 56), (2, 2), {}), 64 * 56 * 56 // 8, 1.06),  # loads
        (((1, 64, 28, 28), (3, 3), {"stride": 1, "padding": 1}), 4 * (82**2 + 3 * 28**2), 1.02),  # slots
    ],
)
def test_means_keep_the_machine_busy(arguments: tuple, least: int, share: float) -> None:  # type: ignore[type-arg]
    """Each element of a window takes one slot, and reset, factor and shift take one each. Weights are loaded
    once."""
    shape, kernel, options = arguments
    workload = accel.avg_pool2d(*shape, kernel, **options)
    program = accel.build(workload, "vta")
    result = program.run()
    assert result.mismatches == 0
    assert result.cycles is not None
    assert least < result.cycles < share * least
    weights = [i for i in program.instructions if isinstance(i, Load) and i.memory is Memory.WGT]
    assert len(weights) <= 4
    best = find_candidates(workload, program.config)[0]
    assert best.prediction.cycles == pytest.approx(result.cycles, rel=0.04)
    assert result.utilization == 0


@pytest.mark.parametrize(
    ("arguments", "slots"),
    [
        # maxima across in place take 2 steps per row and output, those down take a copy and 2 steps
        (((1, 64, 56, 56), 3, 2, 1), lambda rows: 4 * (rows * (2 * 28 - 1) + 28 * (4 * 28 - 1))),
        # windows that overlap in all their elements also take a copy and 2 steps across
        (((1, 64, 28, 28), 3, 1, 1), lambda rows: 4 * (rows * (4 * 28 - 2) + 28 * (4 * 28 - 2))),
        (((1, 64, 56, 56), 2, 2, 0), lambda rows: 4 * (rows * 28 + 28 * 3 * 28)),
        (((1, 512, 7, 7), 7, 7, 0), lambda rows: 32 * (rows * 6 + 8)),
    ],
)
def test_maxima_take_few_passes(arguments: tuple, slots: object) -> None:  # type: ignore[type-arg]
    """At most 12 % more passes, for rows that two tiles need. The remaining time is that of the compute
    unit's loads."""
    shape, kernel, stride, padding = arguments
    workload, machine = accel.max_pool2d(*shape, kernel, stride=stride, padding=padding), accel.machine("vta")
    chosen = next(one for one in find_candidates(workload, machine.config) if not one.plan.identity_products)
    program = accel.build(POOL_PLANNER.schedule(workload, machine, chosen.plan), machine)
    once = slots(shape[2])  # type: ignore[operator]
    assert once <= passes(program) < 1.12 * once
    result = program.run()
    assert result.mismatches == 0
    assert result.cycles is not None
    loaded = result.bytes_by_kind["acc_8bit"]
    assert np.prod(shape) <= loaded < 1.1 * np.prod(shape)
    assert result.cycles < 1.12 * (passes(program) + loaded / 8) + 600
    best = chosen.prediction
    assert best.cycles == pytest.approx(result.cycles, rel=0.02)
    if best.cycles > 20000:
        assert best.bound == "compute"


def test_windows_as_wide_as_the_input() -> None:
    """Elements that are overwritten by the maximum of their window are not adjacent here."""
    workload, machine = accel.max_pool2d(8, 20, 9, 3, 3, stride=2, padding=(1, 0)), accel.machine("gemm8x8")
    found = find_candidates(workload, machine.config)
    for plan in [one.plan for one in found if one.plan.columns == 1][:3]:
        steps = POOL_PLANNER.schedule(workload, machine, plan).steps
        assert accel.build(workload, machine, steps=steps).run().mismatches == 0


def test_padding_is_excluded() -> None:
    program = accel.build(accel.max_pool2d(1, 16, 4, 4, 3, stride=2, padding=1), "vta")
    # across: 4 rows of 2 outputs, the first without one element; down: a copy, and the same number
    assert passes(program) == 4 * (2 * 2 - 1) + 2 * (2 * 2 + 2 * 2 - 1)


# --- own schedules ---------------------------------------------------------------------------------------


def test_in_place_and_copied() -> None:
    """The nest shows which maxima are in place. Its guards exclude the padding."""
    program = accel.build(accel.max_pool2d(1, 16, 5, 4, 3, stride=(1, 2), padding=1), "vta")
    assert te.format_nest(te.tensorize(program.schedule())) == dedent(
        """\
        acc_buffer dataL[1][16][5][4]
        acc_buffer outL[1][16][5][2]
        vdla.dma_copy2d(dataL, data[0][0:16][0:5][0:4])
        for y in range(5):
            for x in range(2):
                if -1 < x*2-1:
                    vdla.max(dataL[0][0:16][y][x*2], dataL[0][0:16][y][x*2-1])
                vdla.max(dataL[0][0:16][y][x*2], dataL[0][0:16][y][x*2+1])
        for y in range(5):
            for x in range(2):
                vdla.fill_zero(outL[0][0:16][y][x])
                vdla.add(outL[0][0:16][y][x], dataL[0][0:16][y][x*2])
                if -1 < y-1:
                    vdla.max(outL[0][0:16][y][x], dataL[0][0:16][y-1][x*2])
                if y+1 < 5:
                    vdla.max(outL[0][0:16][y][x], dataL[0][0:16][y+1][x*2])
        vdla.dma_copy2d(out[0][0:16][0:5][0:2], outL)
        """
    )


def windowed(body: object, size: int = 8) -> Schedule:
    """Return the schedule of an ALU computation on int8 values in accumulators."""
    m = accel.machine("tiny", acc_bytes="16KiB")
    A = te.placeholder((1, 8, 9, 9), name="A")
    out = te.compute((1, 8, size, size), lambda n, c, y, x: body(A, n, c, y, x), name="out", dtype="int8")  # type: ignore[operator]
    s = te.create_schedule(out)
    done = s[s.cache_write(out, m.acc_buffer)]
    s[s.cache_read(A, m.acc_buffer)].compute_at(s[out], s[out].axis[0])
    done.compute_at(s[out], s[out].axis[0])
    n, c, y, x = done.axis
    co, ci = done.split(c, 8)
    done.reorder(n, co, y, x, ci)
    done.tensorize(ci, m.alu)
    return s


@pytest.mark.parametrize(
    "body",
    [
        lambda A, n, c, y, x: maximum(A[n, c, y, x], A[n, c, y + 1, x]),
        lambda A, n, c, y, x: A[n, c, y, x] + A[n, c, y, x + 1] + A[n, c, y + 1, x],
        lambda A, n, c, y, x: (A[n, c, y, x] + A[n, c, y + 1, x + 1]) * 3 >> 1,
        lambda A, n, c, y, x: (
            A[n, c, y, x] * (Guarded(Const(3), ((x, Const(2)),)) + Guarded(Const(-2), ((Const(1), x),)))
        ),
    ],
)
def test_neighbours_in_the_accumulators(body: object) -> None:
    s = windowed(body)
    inputs = {"A": np.random.default_rng(0).integers(-128, 128, (1, 8, 9, 9), dtype=np.int8)}
    want = te.evaluate(s.outputs, inputs)["out"]
    program = accel.build(s, accel.machine("tiny", acc_bytes="16KiB"))
    np.testing.assert_array_equal(te.interpret(te.tensorize(s), inputs)["out"], want)
    np.testing.assert_array_equal(program.run(inputs, backend="functional").outputs["out"], want)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda A, n, c, y, x: A[n, c, y, x] + Guarded(A[n, c, y + 1, x], ((y, Const(3)),), 1),
            "outL combines AL[n][c][y][x] with (AL[n][c][y+1][x] if y < 3 else 1); where a condition fails, "
            "the ALU leaves the accumulator as it is, as 0 would",
        ),
        (
            lambda A, n, c, y, x: maximum(A[n, c, y, x], Guarded(A[n, c, y + 1, x], ((y, Const(3)),))),
            "outL combines AL[n][c][y][x] with (AL[n][c][y+1][x] if y < 3 else 0); where a condition fails, "
            f"the ALU leaves the accumulator as it is, as {INT32_MIN} would",
        ),
        (
            lambda A, n, c, y, x: (
                A[n, c, y, x] * (Guarded(Const(3), ((x, Const(2)),)) + Guarded(Const(2), ((x, Const(3)),)))
            ),
            "outL multiplies by a sum of constants, but not exactly one of them applies to every element",
        ),
        (
            lambda A, n, c, y, x: (
                A[n, c, y, x]
                * (Guarded(Const(1 << 15), ((x, Const(2)),)) + Guarded(Const(2), ((Const(1), x),)))
            ),
            "outL has the constant 32768; an immediate is in -32768..32767",
        ),
    ],
)
def test_operations_missing_in_the_alu(body: object, message: str) -> None:
    with refused(TensorizeError, message):
        te.tensorize(windowed(body))


def test_other_sums_are_products_with_an_identity_matrix_too() -> None:
    m = accel.machine("tiny")
    A = te.placeholder((1, 20, 5), name="A")
    d = te.reduce_axis((0, 5), name="d")
    S = te.compute((1, 20), lambda n, o: te.sum(A[n, o, d], axis=d), name="S", dtype="int8")
    s = te.create_schedule(S)
    sums = s[s.cache_write(S, m.acc_buffer)]
    unit = sums.multiply_identity("o", 8)
    inputs = {"A": np.random.default_rng(0).integers(-128, 128, (1, 20, 5), dtype=np.int8)}
    want = te.evaluate([S], inputs)["S"]
    np.testing.assert_array_equal(te.interpret(te.lower(s), inputs)["S"], want)
    s.cache_read(A, m.inp_buffer)
    s.cache_read(unit, m.wgt_buffer)
    n, o = sums.axis
    oo, oi = sums.split(o, 8)
    co, ci = sums.split("c", 4)
    sums.reorder(n, oo, co, "d", oi, ci)
    sums.tensorize(oi, m.gemm)
    program = accel.build(s, m)
    np.testing.assert_array_equal(program.run(inputs, backend="functional").outputs["S"], want)
    assert [region.name for region in program.regions] == ["identity"]


@pytest.mark.parametrize(
    ("axis", "block", "message"),
    [
        ("o", 21, "the identity matrix for S has 21 rows; along o it has 1 to 20"),
        ("o", 0, "the identity matrix for S has 0 rows; along o it has 1 to 20"),
        (
            "n",
            1,
            "S is not a sum of elements at n of one tensor; only such sums can be products with an identity "
            "matrix",
        ),
    ],
)
def test_computations_without_an_identity_product(axis: str, block: int, message: str) -> None:
    A = te.placeholder((20, 5), name="A")
    d = te.reduce_axis((0, 5), name="d")
    S = te.compute((4, 20), lambda n, o: te.sum(A[o, d], axis=d), name="S")
    with refused(ScheduleError, message):
        te.create_schedule(S)["S"].multiply_identity(axis, block)


# --- the workload ----------------------------------------------------------------------------------------


def test_as_data_and_back() -> None:
    for workload in (
        accel.max_pool2d(1, 2, 5, 6, 3, padding=1),
        accel.avg_pool2d(1, 2, 5, 6, 3, padding=1),
    ):
        data = expression_to_data([workload.output])
        assert expression_to_data(expression_from_data(data)) == data


def test_windows_stand_side_by_side_unless_said() -> None:
    for make, kernel in product((accel.max_pool2d, accel.avg_pool2d), (2, (2, 3))):
        assert make(1, 1, 6, 6, kernel).output.shape == (1, 1, 3, 3 if kernel == 2 else 2)
        assert make(1, 1, 6, 6, kernel, stride=1).output.shape == (1, 1, 5, 5 if kernel == 2 else 4)


def test_gemm_for_means_alu_for_maxima() -> None:
    mean = accel.build(accel.avg_pool2d(1, 16, 4, 4, 2), "vta").instructions
    assert any(isinstance(i, Gemm) and not i.reset for i in mean)
    largest = accel.build(accel.max_pool2d(1, 16, 4, 4, 2), "vta").instructions
    assert not any(isinstance(i, Gemm) and not i.reset for i in largest)
    assert any(isinstance(i, Alu) for i in largest)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"C": 0}, "C is 0; it must be a positive integer"),
        ({"kernel": (3, 0)}, "kernel is (3, 0); it must be a positive integer or two of them"),
        ({"stride": 0}, "stride is 0; it must be a positive integer or two of them"),
        ({"dilation": 3}, "the kernel is 7 high; the input with its padding is 5"),
        ({"kernel": 6}, "the kernel is 6 high; the input with its padding is 5"),
        (
            {"padding": (3, 0)},
            "padding is [3, 0, 3, 0]; with a kernel of [3, 3] some window covers only padding",
        ),
    ],
)
@pytest.mark.parametrize("make", [accel.max_pool2d, accel.avg_pool2d])
def test_bad_arguments(make: object, changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"N": 1, "C": 4, "H": 5, "W": 5, "kernel": 3}
    with refused(ShapeError, message):
        make(**(arguments | changes))  # type: ignore[operator]


def test_the_identity_matrix_of_blocks_that_are_not_square() -> None:
    """A mean of 8 channels takes 8 x 8 products: four elements of ``wgt`` with 2 x 8 weights each."""
    blocks = {"block_in": 8, "block_out": 2, "inp_bytes": 128, "acc_bytes": 64}
    workload = accel.avg_pool2d(1, 11, 7, 4, (7, 4))
    with pytest.raises(
        ScheduleError, match=r"^not even .* of this mean fit .* need 64 bytes of wgt \(wgt_bytes is 32\)$"
    ):
        accel.build(workload, accel.machine("tiny", **blocks, wgt_bytes=32))
    program = accel.build(workload, accel.machine("tiny", **blocks, wgt_bytes=64))
    assert program.run(program.random_inputs()).mismatches == 0


def test_windows_too_large_for_the_scratchpads() -> None:
    workload = accel.max_pool2d(1, 1, 1, 200, (1, 200))
    message = (
        "not even the smallest tiles of this pooling fit configuration 'small'; they need 3216 bytes of acc "
        "(acc_bytes is 1024)"
    )
    with refused(ScheduleError, message):
        accel.build(workload, accel.machine(SMALL))
    with refused(ScheduleError, "50 virtual threads do not fit configuration 'tiny'; at most 25 do"):
        accel.build(accel.max_pool2d(1, 400, 4, 4, 2), "tiny", vthreads=50)

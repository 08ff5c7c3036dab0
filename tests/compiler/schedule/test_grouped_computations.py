"""Groups: recognised, merged to whole blocks, and scheduled efficiently."""

from itertools import product
from math import gcd
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ProgramError, ScheduleError, ShapeError, TensorizeError
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.schedule.grouped_computations import groups_to_merge
from accel.core.isa import Load, Memory
from accel.image.packed_layout import BlockDiagonal
from accel.run.program import Program
from accel.te import Schedule, Stage
from tests.compiler.convs import any_inputs, expected
from tests.compiler.running import as_it_is
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import also


@given(st.data())
def test_widening_pads_each_group_with_zeros(data: st.DataObject) -> None:
    rows, columns, merged, groups, taps = (data.draw(st.integers(1, 4)) for _ in range(5))
    plain = np.arange(1, rows * groups * columns * taps + 1).reshape(rows * groups, columns, taps)
    how = BlockDiagonal(rows=rows, merged=merged)
    wide = how.widen(plain)
    assert wide.shape == (rows * groups, merged * columns, taps)
    for o, c in product(range(wide.shape[0]), range(wide.shape[1])):
        inside = c - o // rows % merged * columns
        want = plain[o, inside] if 0 <= inside < columns else np.zeros(taps)
        np.testing.assert_array_equal(wide[o, c], want)
    np.testing.assert_array_equal(how.narrow(wide), plain)
    assert how.narrow_shape(wide.shape) == plain.shape


def test_groups_that_are_not_widened() -> None:
    with refused(ProgramError, "weights are widened by 0 groups of 3 rows; both must be positive"):
        BlockDiagonal(rows=3, merged=0)
    for shape in ((6,), (6, 5)):
        with refused(ProgramError, f"weights of shape {list(shape)} are not those of 2 merged groups"):
            BlockDiagonal(rows=3, merged=2).narrow_shape(shape)


@given(*(st.integers(1, 40) for _ in range(5)))
def test_the_fewest_groups_that_fill_whole_blocks(
    count: int, rows: int, columns: int, out: int, inp: int
) -> None:
    merged = groups_to_merge(count, rows, columns, (out, inp))
    whole = [n for n in range(1, count + 1) if n * rows % out == n * columns % inp == 0]
    assert merged == min(whole, default=count)


# --- the operator --------------------------------------------------------------------------------------


def sums(rows: int = 1, columns: int = 1, groups: int = 8) -> Schedule:
    A = te.placeholder((columns * groups,), name="A")
    W = te.placeholder((rows * groups, columns), name="W")
    c = te.reduce_axis((0, columns), name="c")
    S = te.compute((rows * groups,), lambda o: te.sum(W[o, c] * A[o // rows * columns + c], axis=c), name="S")
    return te.create_schedule(S)


def test_merge_groups() -> None:
    s = sums()
    assert s["S"].merge_groups("c", 4).name == "W_wide"
    assert te.format_nest(te.lower(s)) == dedent(
        """\
        int8 W_wide[8][4]
        for o in range(8):
            for c in range(4):
                W_wide[o][c] = (W[o][c-o%4] if -1 < c-o%4 and c-o%4 < 1 else 0)
        for o in range(8):
            S[o] = 0
            for c in range(4):
                S[o] += W_wide[o][c] * A[o//4*4+c]
        """
    )


@examples(60)
@given(st.data())
def test_merging_does_not_change_results(data: st.DataObject) -> None:
    rows, columns, groups = (data.draw(st.integers(n, 5)) for n in (1, 1, 2))
    s = sums(rows, columns, groups)
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.integers(-128, 128, t.shape, dtype=np.int8) for t in s.inputs}
    want = te.evaluate(s.outputs, inputs)["S"]
    s["S"].merge_groups("c", data.draw(st.integers(1, groups)))
    np.testing.assert_array_equal(te.interpret(te.lower(s), inputs)["S"], want)


def weights_are_cached(s: Schedule) -> Stage:
    s.cache_read(s.tensor("W"), accel.machine("tiny").wgt_buffer)
    return s["S"]


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        (lambda s: s["S"].merge_groups("c", 9), "the number of groups to merge is 9; S has 8"),
        (lambda s: s["S"].merge_groups("c", 0), "the number of groups to merge is 0; S has 8"),
        (
            lambda s: s["S"].merge_groups("o", 2),
            "S has no groups along o; they are merged where data at row // rows * columns + o is multiplied "
            "by weights at [row, o, ...] with 8 columns",
        ),
        (lambda s: s["S"].merge_groups("k", 2), "'k' is not a loop of S; valid are c, o"),
        (
            lambda s: weights_are_cached(s).merge_groups("c", 2),
            "WL is not an input that S alone reads; the host can widen only such inputs: merge groups before "
            "cache_read",
        ),
    ],
)
def test_groups_that_cannot_be_merged(merge: object, message: str) -> None:
    with refused(ScheduleError, message):
        merge(sums())  # type: ignore[operator]


def test_an_ordinary_sum_has_no_groups() -> None:
    s = te.create_schedule(accel.conv2d(1, 4, 4, 4, 4, 3).output)
    message = (
        "out has no groups along c; they are merged where data at row // rows * columns + c is multiplied by "
        "weights at [row, c, ...] with 4 columns"
    )
    with refused(ScheduleError, message):
        s["out"].merge_groups("c", 2)


def test_wide_weights_stay_in_dram() -> None:
    s = sums()
    wide = s["S"].merge_groups("c", 4)
    s[wide].set_scope(accel.machine("tiny").wgt_buffer)
    message = "W_wide is computed by the host when it packs; it stays in DRAM, outside of all loops"
    with refused(TensorizeError, message):
        te.tensorize(s)


NAMES = ("vta", "tiny", "gemm8x8")
"""Machines. The default suite runs each shape on one of them."""


# --- programs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "inputs", "outputs", "name"),
    [
        case if n % len(NAMES) == place else also(*case)
        for n, sizes in enumerate([(40, 1, 1), (19, 1, 2), (6, 4, 8), (5, 3, 7), (3, 24, 20), (2, 32, 32)])
        for place, case in enumerate((*sizes, name) for name in NAMES)
    ],
)
def test_any_threads(groups: int, inputs: int, outputs: int, name: str) -> None:
    workload = accel.conv2d(
        1,
        *(groups * inputs, 7, 6, groups * outputs, 3),
        groups=groups,
        padding=1,
        stride=(1, 2),
        bias=True,
        shift=5,
    )
    data = any_inputs(workload, 0)
    for threads in (1, 2, 3):
        program = as_it_is(workload, name, vthreads=threads)
        assert program.check().left_over == (0, 0, 0, 0)
        found = program.run(data, backend="functional", order="random")
        np.testing.assert_array_equal(found.outputs["out"], expected(workload, data))


def test_the_host_widens_weights(tmp_path: object) -> None:
    """Users see the original weights, both as inputs of a run and as constants of a program."""
    workload = accel.conv2d(1, 20, 6, 6, 20, 3, groups=20, padding=1, bias=True, shift=7)
    inputs = any_inputs(workload, 3)
    want = expected(workload, inputs)
    constants = {"weight": inputs["weight"]}
    for known in ({}, constants):
        program = as_it_is(workload, "vta", constants=known)
        program.save(f"{tmp_path}/p.accel")
        loaded = Program.load(f"{tmp_path}/p.accel")
        (weight,) = [t for t in loaded.tensors if t.name == "weight"]
        assert weight.shape == (20, 1, 3, 3)
        assert weight.nbytes == 2 * 16 * 16 * 9
        given_now = {name: value for name, value in inputs.items() if name not in known}
        np.testing.assert_array_equal(loaded.run(given_now).outputs["out"], want)
        np.testing.assert_array_equal(loaded.reference(given_now)["out"], want)


@pytest.mark.parametrize(
    ("size", "channels", "stride", "share"),
    [(28, 256, 1, 1.01), (14, 512, 1, 1.02), (14, 512, 2, 1.24), (7, 1024, 1, 1.04)],
)
def test_depthwise_layers_take_a_slot_per_tap(size: int, channels: int, stride: int, share: float) -> None:
    """In layers of MobileNet-v1 the slots of GEMM and ALU are the bound, with stride 2 the loads."""
    workload = accel.conv2d(
        1,
        *(channels, size, size, channels, 3),
        stride=stride,
        padding=1,
        groups=channels,
        bias=True,
        relu=True,
        shift=6,
    )
    config = accel.machine("vta").config
    shape = conv_shape(workload, config)
    rows = (size - 1) // stride + 1
    taps = 3 * rows - (2 if stride == 1 else 1)
    assert shape.slots == channels // 16 * (taps**2 + 4 * rows**2)
    program = as_it_is(workload, "vta")
    result = program.run(backend="sim")
    assert result.mismatches == 0
    assert result.cycles is not None
    assert shape.slots < result.cycles < share * shape.slots
    prediction = find_candidates(workload, config)[0].prediction
    assert prediction.cycles == pytest.approx(result.cycles, rel=0.015)
    assert prediction.bound == ("loads" if stride == 2 else "compute")
    figures = result.to_dict()
    assert figures["macs"] == channels * rows**2 * 9
    assert figures["macs"] - figures["padding_macs"] == channels * taps**2


def test_groups_are_loaded_once() -> None:
    """A load brings a group's weights, or its input if a tile has all rows."""
    workload = accel.conv2d(1, 128, 7, 7, 128, 3, padding=1, groups=128, bias=True, shift=6)
    program = as_it_is(workload, "vta")
    loads = [i.memory for i in program.instructions if isinstance(i, Load)]
    assert (loads.count(Memory.INP), loads.count(Memory.WGT)) == (8, 8)


def test_whole_blocks_need_no_widening() -> None:
    workload = accel.conv2d(1, 64, 5, 5, 96, 3, groups=2)
    program = as_it_is(workload, "vta")
    assert [t.widening for t in program.tensors] == [None] * 3
    assert conv_shape(workload, program.config).gemm_slots == 2 * 3 * 2 * 9 * 9
    assert gcd(64 // 2, 96 // 2) % 16 == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": 0}, "groups is 0; it must be a positive integer"),
        ({"groups": 4}, "IC is 6; 4 groups do not divide it"),
        ({"groups": 6}, "OC is 9; 6 groups do not divide it"),
    ],
)
def test_bad_groups(changes: dict[str, int], message: str) -> None:
    with refused(ShapeError, message):
        accel.conv2d(1, 6, 5, 5, 9, 3, **changes)

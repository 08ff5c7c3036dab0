"""The public API: machines, workloads, programs, runs."""

import copy
import json
import pickle
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import (
    AccelError,
    ConfigError,
    LimitExceeded,
    ProgramError,
    RaceError,
    ScheduleError,
    ShapeError,
)
from accel.base.records import replace
from accel.core.events import EventKind
from accel.core.isa import Gemm, Load, Memory, Store, Unit
from accel.core.token_rules import pops, pushes
from accel.run.program import Program
from accel.sim.functional.scratchpads import Scratchpads
from tests.compiler.convs import epilogues
from tests.expect import refused
from tests.programs import TINY, gemm_program, handmade
from tests.strategies import examples
from tests.thorough import also

Array = npt.NDArray[Any]


def int8(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def expected(
    a: Array,
    b: Array,
    bias: Array | None,
    *,
    relu: bool,
    shift: int | None,
    residual: Array | None = None,
    clip: tuple[int, int] | None = None,
) -> Array:
    """Compute ``compile gemm`` in plain numpy, as the help of the command line describes it."""
    sums = a.astype(np.int64) @ b.astype(np.int64)
    if bias is not None:
        sums = (sums + bias).astype(np.int32)
    if shift is None and residual is None and not relu and clip is None:
        return sums.astype(np.int8)
    if shift is not None:
        sums = sums >> shift
    if residual is not None:
        sums = sums + residual
    if relu:
        sums = sums.clip(0)
    return sums.clip(*(clip or (-128, 127))).astype(np.int8)


# --- machines --------------------------------------------------------------------------------------


def test_machines_by_name_path_and_configuration(tmp_path: Path) -> None:
    assert accel.machine().config.name == "vta"
    assert accel.machine("tiny").config == TINY
    assert accel.machine(TINY).config == TINY
    ours, vtas = tmp_path / "ours.json", tmp_path / "vtas.json"
    ours.write_text(json.dumps({"batch": 2, "read_latency": 5}))
    vtas.write_text(json.dumps({"LOG_INP_BUFF_SIZE": 14}))
    assert accel.machine(ours).config == accel.Config(name="ours", batch=2, read_latency=5)
    assert accel.machine(str(vtas)).config == accel.Config(name="vtas", inp_bytes=1 << 14)


def test_machines_take_overrides() -> None:
    config = accel.machine("tiny", batch=2, acc_bytes="8KiB", read_latency="0x20").config
    assert (config.batch, config.acc_bytes, config.read_latency) == (2, 8192, 32)
    with refused(ConfigError, "'read_latncy' is not a configuration field; did you mean 'read_latency'?"):
        accel.machine("tiny", read_latncy=3)
    with pytest.raises(ConfigError, match=r"^'tinny' is not a configuration; did you mean 'tiny'\?"):
        accel.machine("tinny")
    with pytest.raises(ConfigError, match=r"^configuration 'tiny' needs 135 bits for Gemm; there are 128"):
        accel.machine("tiny", inp_bytes=1 << 26)


def test_machines_have_scopes_and_intrinsics() -> None:
    m = accel.machine("gemm8x8")
    assert m.gemm8x8.name == m.gemm.name == m.intrinsic("gemm8x8").name == "gemm8x8"
    assert accel.machine("vta").gemm1x16x16.name == "gemm1x16x16"
    assert [s.name for s in (m.inp_buffer, m.wgt_buffer, m.acc_buffer)] == [
        *("inp_buffer", "wgt_buffer", "acc_buffer")
    ]
    assert m.scope("acc_buffer") == m.acc_buffer
    for intrinsic in (m.fill_zero, m.dma_copy2d, m.alu):
        assert m.intrinsic(intrinsic.name).name == intrinsic.name
    with pytest.raises(AttributeError, match="machine 'gemm8x8' has no attribute 'gemm16x16'"):
        _ = m.gemm16x16
    with refused(ScheduleError, "machine 'gemm8x8' has no intrinsic 'gemm8x9'; did you mean 'gemm8x8'?"):
        m.intrinsic("gemm8x9")
    with refused(ScheduleError, "machine 'gemm8x8' has no scope 'acc_bufer'; did you mean 'acc_buffer'?"):
        m.scope("acc_bufer")


@pytest.mark.parametrize("travel", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_values_can_be_copied_and_pickled(travel: Callable[[Any], Any]) -> None:
    m = accel.machine("tiny")
    assert travel(m) == m
    assert travel(m.config) == m.config
    workload = travel(accel.gemm(3, 9, 5, bias=True))
    assert workload == accel.gemm(3, 9, 5, bias=True)
    assert accel.build(workload, travel(m)).code == gemm_program(bias=True).code
    for intrinsic in (m.gemm, m.fill_zero, m.dma_copy2d, m.alu):
        assert travel(intrinsic) == intrinsic


def test_the_repr_of_a_program_is_one_line() -> None:
    assert repr(gemm_program(bias=True)) == (
        f"Program(gemm for tiny, {len(gemm_program(bias=True).instructions)} instructions, "
        f"{gemm_program(bias=True).size} bytes of DRAM; input bias int32[9], input A int8[3, 5], "
        f"input B int8[5, 9], output C int8[3, 9])"
    )
    assert repr(handmade(Load(memory=Memory.INP, y_size=1, x_size=1, x_stride=1))).startswith(
        "Program(for tiny, "
    )
    assert len(repr(accel.build(accel.gemm(256, 256, 256), "gemm8x8"))) < 300


@pytest.mark.parametrize("config", ["gemm8x8", "vta", "tiny"])
def test_a_residual_and_bounds_after_a_product(config: str) -> None:
    """More than one tile, compared with numpy, not only with our own reference."""
    M, N, K = 70, 90, 50
    epilogue: dict[str, Any] = {"relu": False, "shift": 6, "clip": (-20, 90)}
    program = accel.build(accel.gemm(M, N, K, bias=True, residual=True, **epilogue), config)
    a, b, residual = int8(M, K, seed=1), int8(K, N, seed=2), int8(M, N, seed=3)
    bias = np.random.default_rng(4).integers(-(1 << 12), 1 << 12, N).astype(np.int32)
    result = program.run({"A": a, "B": b, "bias": bias, "residual": residual})
    assert result.mismatches == 0
    right = expected(a, b, bias, residual=residual, **epilogue)
    np.testing.assert_array_equal(result.outputs["C"], right)
    assert (right.min(), right.max()) == (-20, 90)


# --- results of programs ---------------------------------------------------------------------------

sizes = st.tuples(*[st.integers(1, 20)] * 3)


@given(
    sizes=sizes,
    config=st.sampled_from(["tiny", "vta", "gemm8x8", "ecp5"]),
    transposed=st.tuples(st.booleans(), st.booleans()),
    epilogue=epilogues,
    seed=st.integers(0, 1000),
)
@examples(80)
def test_matrix_products(
    sizes: tuple[int, int, int],
    config: str,
    transposed: tuple[bool, bool],
    epilogue: dict[str, Any],
    seed: int,
) -> None:
    """The operands have the full range, so that sums wrap and results saturate."""
    M, N, K = sizes
    workload = accel.gemm(M, N, K, transpose_a=transposed[0], transpose_b=transposed[1], **epilogue)
    a, b = int8(M, K, seed=seed), int8(K, N, seed=seed + 1)
    inputs = {"A": a.T if transposed[0] else a, "B": b.T if transposed[1] else b}
    if epilogue["residual"]:
        inputs["residual"] = int8(M, N, seed=seed + 2)
    if epilogue["bias"]:
        inputs["bias"] = np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, N).astype(np.int32)
    result = accel.build(workload, config).run(inputs)
    assert result.mismatches == 0
    given = {name: inputs.get(name) for name in ("bias", "residual")}
    right = expected(a, b, **(epilogue | given))
    np.testing.assert_array_equal(result.outputs["C"], right)
    assert result.outputs["C"].dtype == np.int8


@pytest.mark.parametrize("size", [(1, 1, 1), (7, 13, 5), (64, 64, 64), also((256, 256, 256))], ids=str)
@pytest.mark.parametrize("config", ["gemm8x8", "vta", "tiny"])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transpositions(
    size: tuple[int, int, int], config: str, transpose_a: bool, transpose_b: bool
) -> None:
    """The operands have the full range. Results are compared with numpy, not only with our own reference."""
    M, N, K = size
    a, b = int8(M, K, seed=1), int8(K, N, seed=2)
    workload = accel.gemm(M, N, K, transpose_a=transpose_a, transpose_b=transpose_b)
    program = accel.build(workload, config)
    result = program.run({"A": a.T if transpose_a else a, "B": b.T if transpose_b else b})
    assert result.mismatches == 0
    np.testing.assert_array_equal(result.outputs["C"], (a.astype(np.int64) @ b).astype(np.int8))


@pytest.mark.parametrize("shift", [0, 5, 8])
def test_random_inputs_seldom_saturate(shift: int) -> None:
    program = gemm_program(40, 40, 200, shift=shift)
    outputs = program.run().outputs["C"]
    assert ((outputs == 127) | (outputs == -128)).mean() < 0.01
    assert len(np.unique(outputs)) > 40


def test_seeds_make_inputs() -> None:
    program = gemm_program(bias=True)
    first, again, other = (program.random_inputs(seed) for seed in (1, 1, 2))
    assert {name: (a.shape, str(a.dtype)) for name, a in first.items()} == {
        "A": ((3, 5), "int8"),
        "B": ((5, 9), "int8"),
        "bias": ((9,), "int32"),
    }
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
        assert (first[name] != other[name]).any()
    np.testing.assert_array_equal(program.run(seed=1).outputs["C"], program.run(first, seed=9).outputs["C"])
    with refused(AccelError, "the seed is -1; it must be an integer from 0 on"):
        program.random_inputs(-1)
    with refused(AccelError, "the seed is -1; it must be an integer from 0 on"):
        program.run(first, seed=-1)


def test_some_inputs_may_be_given() -> None:
    program = gemm_program()
    drawn = program.random_inputs(seed=4)
    given_a = {"A": int8(3, 5)}
    right = expected(given_a["A"], drawn["B"], None, relu=False, shift=None)
    np.testing.assert_array_equal(program.run(given_a, seed=4).outputs["C"], right)


def test_inputs_may_have_any_memory_layout() -> None:
    program = gemm_program()
    a, b = int8(3, 5), int8(5, 9)
    wide = np.zeros((6, 10), np.int8)
    wide[::2, ::2] = a
    right = program.run({"A": a, "B": b}).outputs["C"]
    for same in (np.asfortranarray(a), wide[::2, ::2], a[::-1][::-1]):
        np.testing.assert_array_equal(program.run({"A": same, "B": b}).outputs["C"], right)
    assert right.flags.c_contiguous


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"A": int8(3, 5).astype(np.int16)}, "A has dtype int16; it must be int8"),
        ({"A": int8(3, 5).astype(bool)}, "A has dtype bool; it must be int8"),
        ({"bias": np.zeros(9, ">i4")}, "bias has dtype >i4; it must be int32"),
        ({"A": int8(5, 3)}, "A has shape [5, 3]; it must be [3, 5]"),
        ({"A": int8(15)}, "A has shape [15]; it must be [3, 5]"),
        ({"A": [[1]]}, "A is a list; it must be a numpy array of int8[3, 5]"),
        ({"a": int8(3, 5)}, "'a' is not an input of the program; valid are A, B, bias"),
        ({"bais": int8(9)}, "'bais' is not an input of the program; did you mean 'bias'?"),
        ({"C": int8(3, 9)}, "'C' is not an input of the program; valid are A, B, bias"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: dict[str, Any], message: str) -> None:
    with refused(ShapeError, message):
        gemm_program(bias=True).run(inputs)


def test_a_missing_input_of_the_reference_is_named() -> None:
    with refused(ShapeError, "the input B is missing; it is int8[5, 9]"):
        gemm_program().reference({"A": int8(3, 5)})


# --- constants -------------------------------------------------------------------------------------


def test_constants_are_packed_into_the_program() -> None:
    b = int8(5, 9)
    program = accel.build(accel.gemm(3, 9, 5), "tiny", constants={"B": b})
    (segment,) = [
        content
        for offset, content in program.segments
        if offset == {t.name: t.offset for t in program.tensors}["B"]
    ]
    layout = next(t.layout for t in program.tensors if t.name == "B")
    np.testing.assert_array_equal(layout.unpack(np.frombuffer(segment, np.int8).reshape(layout.packed)), b)
    assert list(program.random_inputs()) == ["A"]
    a = int8(3, 5, seed=1)
    result = program.run({"A": a})
    assert result.mismatches == 0
    np.testing.assert_array_equal(result.outputs["C"], expected(a, b, None, relu=False, shift=None))
    with refused(ShapeError, "'B' is not an input of the program; valid are A"):
        program.run({"B": b})


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"D": int8(5, 9)}, "the constant 'D' is not an input; valid are A, B"),
        ({"B": int8(9, 5)}, "B has shape [9, 5]; it must be [5, 9]"),
        ({"B": np.zeros((5, 9))}, "B has dtype float64; it must be int8"),
        ({"C": int8(3, 9)}, "the constant 'C' is not an input; valid are A, B"),
    ],
)
def test_constants_that_do_not_fit_are_refused(constants: dict[str, Any], message: str) -> None:
    with refused(ShapeError, message):
        accel.build(accel.gemm(3, 9, 5), "tiny", constants=constants)


# --- how programs run ------------------------------------------------------------------------------


def test_build_takes_machines_configurations_names_and_schedules() -> None:
    code = gemm_program().code
    for on in ("tiny", TINY, accel.machine("tiny")):
        assert accel.build(accel.gemm(3, 9, 5), on).code == code
    m = accel.machine("tiny")
    A = te.placeholder((3, 4), name="A")
    B = te.placeholder((4, 8), name="B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((3, 8), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    CL = s.cache_write(C, m.acc_buffer)
    s.cache_read(A, m.inp_buffer)
    s.cache_read(B, m.wgt_buffer)
    yo, yi = s[CL].split(s[CL].op.axis[0], 1)
    s[CL].reorder(yo, yi, s[CL].op.axis[1], s[CL].op.reduce_axis[0])
    s[CL].tensorize(yi, m.gemm)
    result = accel.build(s, m).run()
    assert result.mismatches == 0


def test_compiled_programs_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"y_size": 1, "x_size": 1, "x_stride": 1}
    racy = handmade(Load(memory=Memory.INP, **row), Load(memory=Memory.UOP, **row), Gemm(uop_end=1)).check()
    monkeypatch.setattr(Program, "check", lambda _: racy)
    with pytest.raises(RaceError, match="instruction 0 writes and instruction 2 reads inp elements"):
        accel.build(accel.gemm(3, 9, 5), "tiny")


def test_compilation_is_timed() -> None:
    begin = time.perf_counter()
    seconds = accel.build(accel.gemm(3, 9, 5), "tiny").compile_seconds
    assert seconds is not None
    assert 0 < seconds < time.perf_counter() - begin


def test_instructions_are_fetched_from_their_address() -> None:
    """A burst ends at a 4 KiB boundary."""
    for offset, bursts in ((4096, 1), (4096 - 32, 2)):
        events = replace(handmade(*[Gemm()] * 3), code_offset=offset).run(mem_base=8192).events
        assert events is not None
        assert sum(e.kind is EventKind.BURST_GRANT for e in events) == bursts


def test_timing_may_differ_from_run_to_run() -> None:
    program = gemm_program(20, 20, 20)
    usual, slow, serial = (
        program.run(),
        program.run(read_latency=300, bus_bits="64"),
        program.run(serial=1),
    )
    assert usual.cycles is not None
    assert slow.cycles is not None
    assert serial.cycles is not None
    assert slow.cycles > usual.cycles + 236
    assert serial.cycles > usual.cycles
    assert (slow.config.read_latency, usual.config.read_latency) == (300, 64)
    for other in (slow, serial):
        np.testing.assert_array_equal(other.outputs["C"], usual.outputs["C"])
    with refused(
        ConfigError,
        "'batch' is a geometry field, bound when the program was compiled; "
        "only timing fields can be set here",
    ):
        program.run(batch=2)
    assert program.run().cycles == usual.cycles


@pytest.mark.parametrize("base", [4096, 1 << 32, (1 << 40) - (256 << 20)])
def test_the_window_may_start_anywhere(base: int) -> None:
    """This also holds if the window is known at compile time."""
    program = gemm_program(bias=True, shift=1)
    usual = program.run()
    built = accel.build(accel.gemm(3, 9, 5, bias=True, shift=1), accel.machine("tiny", mem_base=base))
    assert built.code == program.code
    for moved in (program.run(mem_base=base), built.run()):
        np.testing.assert_array_equal(moved.outputs["C"], usual.outputs["C"])
        assert moved.events == usual.events
    assert built.check().ok


def test_a_window_too_small_is_refused() -> None:
    program = gemm_program()
    assert program.run(mem_size=program.size).mismatches == 0
    with refused(
        ProgramError,
        f"the program occupies {program.size} bytes of DRAM; the window has mem_size={program.size - 1}",
    ):
        program.run(mem_size=program.size - 1)


def test_limits_are_exact() -> None:
    program = gemm_program()
    result = program.run()
    assert result.cycles is not None
    uops = result.to_dict()["uops"]
    assert program.run(max_cycles=result.cycles, max_uops=uops).cycles == result.cycles
    with pytest.raises(LimitExceeded, match=f"more than {result.cycles - 1} cycles") as late:
        program.run(max_cycles=result.cycles - 1)
    assert late.value.cycle == result.cycles - 1
    for backend in ("sim", "functional"):
        with pytest.raises(LimitExceeded, match=f"at most {uops - 1} are allowed"):
            program.run(max_uops=uops - 1, backend=backend)


def test_limits_of_a_program_are_found_by_their_old_name() -> None:
    program = gemm_program()
    bounded = replace(program, start=replace(program.start, max_cycles=9))
    with pytest.warns(DeprecationWarning, match=r"Program\.limits goes with the next release"):
        assert bounded.limits(max_cycles=20, max_uops=5) == (9, 5)


def test_backends_and_orders_agree() -> None:
    program = gemm_program(9, 17, 30, bias=True, relu=True)
    sim = program.run()
    for seed in range(5):
        inputs = program.random_inputs(0)
        other = program.run(inputs, backend="functional", order="random", seed=seed)
        assert (other.backend, other.cycles, other.mismatches) == ("functional", None, 0)
        np.testing.assert_array_equal(other.outputs["C"], sim.outputs["C"])
    with refused(AccelError, "the backend is 'simm'; did you mean 'sim'?"):
        program.run(backend="simm")
    with refused(AccelError, "the backend is 'verilog'; valid are functional, rtl, sim"):
        program.run(backend="verilog")
    with refused(AccelError, "an engine is given with the backend 'sim'; only 'rtl' takes it"):
        program.run(engine="pysim")
    with refused(AccelError, "a wave file is given with the backend 'sim'; only 'rtl' takes it"):
        program.run(wave="x.vcd")


@pytest.mark.parametrize("serial", [0, 1])
def test_events_are_sorted_and_complete(serial: int) -> None:
    """Every instruction is dispatched, leaves its queue, starts and retires once, with its tokens and
    bursts."""
    program = gemm_program(20, 20, 20, config="gemm8x8", bias=True)
    result = program.run(serial=serial)
    events = result.events
    assert events is not None
    assert events == sorted(events)
    assert result.cycles == events[-1].cycle + 1
    found = Counter((e.kind, e.unit, e.instruction) for e in events)
    for index, instruction in enumerate(program.instructions):
        unit = instruction.unit
        assert found[EventKind.QUEUE_PUSH, Unit.FETCH, index] == 1
        for kind in (EventKind.QUEUE_POP, EventKind.START, EventKind.RETIRE):
            assert found[kind, unit, index] == 1
        assert found[EventKind.TOKEN_POP, unit, index] == len(pops(instruction))
        assert found[EventKind.TOKEN_PUSH, unit, index] == len(pushes(instruction))
    beats = {
        kind: sorted((e.unit, e.instruction, e.value) for e in events if e.kind is kind)
        for kind in (EventKind.BURST_GRANT, EventKind.BURST_LAST)
    }
    assert beats[EventKind.BURST_GRANT] == beats[EventKind.BURST_LAST]
    of_load = sum(value for unit, _, value in beats[EventKind.BURST_LAST] if unit is Unit.LOAD)
    kinds = result.bytes_by_kind
    assert of_load == (kinds["inp"] + kinds["wgt"]) // 16


def test_public_names_exist() -> None:
    for module in (accel, te):
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)


def test_a_complete_run_by_hand() -> None:
    """One block product and its store, with tokens, from DRAM to DRAM."""
    row = {"y_size": 1, "x_size": 1, "x_stride": 1}
    program = handmade(
        Load(memory=Memory.INP, dram_base=64 // 4, **row),
        Load(memory=Memory.WGT, dram_base=128 // 32, push_next=True, **row),
        Load(memory=Memory.UOP, dram_base=0, **row),
        Gemm(reset=True, uop_end=1),
        Gemm(uop_end=1, pop_prev=True, push_next=True),
        Store(dram_base=256 // 8, pop_prev=True, **row),
        segments=((64, bytes([1, 2, 3, 4])), (128, bytes(range(32)))),
    )
    assert program.check().ok
    memory = program.dram()
    simulation = program.execute(memory, Scratchpads.random(program.config, 0))
    simulation.raise_if_bad()
    right = np.array([1, 2, 3, 4]) @ np.arange(32).reshape(8, 4).T
    np.testing.assert_array_equal(memory.read(256, 8), right.astype(np.uint8))


# --- as a function ---------------------------------------------------------------------------------


def test_inputs_are_given_by_name_or_in_order() -> None:
    program = gemm_program()
    values = program.random_inputs(3)
    expected = program.run(values).outputs["C"]
    np.testing.assert_array_equal(program.run(**values).outputs["C"], expected)
    np.testing.assert_array_equal(program(*values.values()), expected)
    first, *_ = values
    mixed = program.run({first: values[first]}, seed=3, read_latency=7)
    np.testing.assert_array_equal(mixed.outputs["C"], expected)
    assert mixed.cycles != program.run(values).cycles


def test_a_keyword_that_is_nothing_is_explained() -> None:
    message = "'read_latncy' is neither an input of the program (A, B) nor a configuration field; "
    with refused(ConfigError, f"{message}did you mean 'read_latency'?"):
        gemm_program().run(read_latncy=3)
    with refused(ShapeError, "3 arrays are given; the inputs are A, B"):
        gemm_program()(*3 * [np.zeros((1, 1), np.int8)])


def test_a_stage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    gemm_program().show("nest")
    assert capsys.readouterr().out.startswith("for y in range(")

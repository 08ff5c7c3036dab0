"""Sessions: tensors that programs exchange in DRAM, the host's work, and invalid uses."""

import gc
import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import accel
from accel.base.errors import AccelError, LimitExceeded, MismatchError, ProgramError, ShapeError
from accel.core.isa import Load, Memory, Store
from accel.image.image import Region
from accel.run.program import Program
from accel.run.session import Session
from tests.compiler.convs import any_inputs, expected
from tests.expect import refused
from tests.programs import TINY, gemm_program, handmade

Array = npt.NDArray[Any]

SQUARE = TINY.override({"block_in": 4, "block_out": 4})
"""A machine whose results have the shape of its operands."""

FIRST = accel.conv2d(1, 8, 6, 6, 16, 3, padding=1, bias=True, shift=9, clip=(0, 127))
SECOND = accel.conv2d(1, 16, 6, 6, 8, 3, stride=2, padding=1, bias=True, shift=9, clip=(0, 127))
LAST = accel.dense(1, 8 * 3 * 3, 10, bias=True, shift=8)


def network(session: Session, *, check: bool = True) -> tuple[Array, Array]:
    """Return the output of two convolutions and a dense layer, computed by a session and by numpy."""
    x: Any = None
    plain: Any = None
    for seed, workload in enumerate((FIRST, SECOND, LAST)):
        inputs: dict[str, Any] = any_inputs(workload, seed)
        if x is not None:
            shape = inputs["data"].shape
            x, plain = x.reshape(*shape), plain.reshape(shape)
            inputs["data"] = plain
        out = expected(workload, inputs)
        if x is not None:
            inputs["data"] = x
        x, plain = session.run(accel.build(workload, session.config), inputs, check=check)["out"], out
    return x.numpy(), plain


@pytest.mark.parametrize("check", [True, False])
def test_a_network(check: bool) -> None:
    """The second layer reads the first one's output directly. The dense one needs another order."""
    session = Session(SQUARE)
    found, right = network(session, check=check)
    np.testing.assert_array_equal(found, right)
    assert [result.mismatches for result in session.results] == ([0, 0, 0] if check else [None] * 3)
    packing = session.packing
    assert (packing.kept, packing.kept_bytes) == (1, 16 * 36)
    assert packing.packed == 1 + 2 * 3 + 1  # the image, weights and biases, and the dense layer's input
    assert packing.unpacked == 2  # for the dense layer, and at the end
    assert packing.unpacked_bytes == 8 * 9 + session.results[2].store_bytes
    assert str(packing).startswith("8 packed (")
    assert packing.to_dict()["kept"] == 1
    assert sum(result.pack_seconds for result in session.results) < packing.seconds


def test_cycles_are_those_of_the_programs() -> None:
    session = Session("tiny")
    network(session)
    alone = [accel.build(one, "tiny").run().cycles for one in (FIRST, SECOND, LAST)]
    assert [result.cycles for result in session.results] == alone
    assert session.cycles == sum(n for n in alone if n is not None)


def test_a_machine_whose_results_are_not_operands() -> None:
    """The blocks of input and output channels differ, so that everything is packed again."""
    assert TINY.block_in != TINY.block_out
    session = Session("tiny")
    found, right = network(session)
    np.testing.assert_array_equal(found, right)
    assert (session.packing.kept, session.packing.unpacked) == (0, 3)


def test_function_without_time() -> None:
    session = Session("tiny", backend="functional")
    found, right = network(session)
    np.testing.assert_array_equal(found, right)
    assert session.cycles is None


def test_programs_run_with_the_timing_of_the_session() -> None:
    slow = TINY.override({"read_latency": 300, "mem_base": 1 << 20})
    session = Session(slow)
    program = gemm_program()
    session.run(program)
    session.run(program)
    cycles = program.run(read_latency=300).cycles
    assert [result.cycles for result in session.results] == [cycles, cycles]
    assert session.results[0].config == slow


def test_outputs_live_as_long_as_the_user_holds_them() -> None:
    """Consecutive runs use the same memory. An output that the user still holds is not overwritten."""
    session = Session("tiny")
    program = gemm_program(9, 17, 30)
    inputs = [program.random_inputs(seed) for seed in range(6)]
    kept = session.run(program, inputs[0])["C"]
    sizes = []
    for one in inputs[1:]:
        session.run(program, one)
        sizes.append(max(image.size for image in [session.results[-1].image]))
    assert len(set(sizes)) == 1
    np.testing.assert_array_equal(kept.numpy(), program.reference(inputs[0])["C"])


def test_values_are_read_only() -> None:
    """A copy in DRAM would not follow."""
    session, program = Session("tiny"), gemm_program(bias=True)
    given = program.random_inputs(0)
    A = session.tensor(given["A"])
    out = session.run(program, given | {"A": A})["C"]
    for tensor in (A, out, out.reshape(-1)):
        with pytest.raises(ValueError, match="read-only"):
            tensor.numpy()[...] = 0
    given["A"][...] = 0  # the array that a tensor was made from remains writable
    np.testing.assert_array_equal(A.numpy(), program.random_inputs(0)["A"])
    np.testing.assert_array_equal(out.numpy(), program.reference(program.random_inputs(0))["C"])


def test_earlier_results_become_summaries_unless_they_are_in_use() -> None:
    session, program = Session("tiny"), gemm_program(bias=True)
    inputs = [program.random_inputs(seed) for seed in range(4)]
    session.run(program, inputs[0])
    first, figures = session.results[0], session.results[0].to_dict()
    for one in inputs[1:]:
        session.run(program, one)
    assert first.events
    assert list(first.outputs) == ["C"]
    kept = session.results[0]
    assert kept is not first
    assert (kept.events, kept.outputs) == (None, {})
    assert kept.to_dict() == figures
    assert type(kept) is type(first)
    assert session.results[-1].events
    assert session.cycles == 4 * (first.cycles or 0) > 0
    assert len({id(one.image) for one in session.results[:-1]}) == 1


def test_memory_does_not_grow_with_runs() -> None:
    session, program = Session("tiny"), gemm_program(9, 17, 30, bias=True)
    inputs = program.random_inputs(0)
    for _ in range(5):
        session.run(program, inputs)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(30):
        session.run(program, inputs)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 30 * 8000  # figures of a run; its events alone take ten times as much


def test_results_may_be_deleted() -> None:
    session, program = Session("tiny"), gemm_program()
    session.run(program)
    session.results.clear()
    session.run(program)
    session.run(program)
    assert [one.mismatches for one in session.results] == [0, 0]


def test_a_stopped_run_raises_its_error() -> None:
    session = Session("tiny")
    with pytest.raises(LimitExceeded) as caught:
        session.run(gemm_program(), max_cycles=10)
    assert caught.value.result.cycles == 10
    assert session.results == []


def test_weights_are_packed_once() -> None:
    session = Session("tiny")
    program = accel.build(SECOND, "tiny")
    inputs = any_inputs(SECOND, 0)
    weight = session.tensor(inputs["weight"])
    first = session.run(program, inputs | {"weight": weight})
    packed = session.packing.packed
    again = session.run(program, inputs | {"weight": weight})
    assert session.packing.packed == packed + 2
    assert session.packing.kept == 1
    np.testing.assert_array_equal(first["out"].numpy(), again["out"].numpy())


@pytest.mark.parametrize(("clip", "kept"), [((0, 127), 1), ((5, 127), 0)])
def test_padding_of_a_tensor_must_be_zero(clip: tuple[int, int], kept: int) -> None:
    """Blocks hold more channels than the tensor, and the bounds make the additional ones nonzero."""
    first = accel.conv2d(1, 3, 4, 4, 3, 1, shift=2, clip=clip)
    second = accel.conv2d(1, 3, 4, 4, 5, 3, shift=4)
    assert 3 % SQUARE.block_in
    session = Session(SQUARE)
    one, two = any_inputs(first, 1), any_inputs(second, 2)
    x = session.run(accel.build(first, SQUARE, mapping="plain"), one)["out"]
    y = session.run(accel.build(second, SQUARE, mapping="plain"), two | {"data": x})["out"]
    right = expected(second, two | {"data": expected(first, one)})
    np.testing.assert_array_equal(y.numpy(), right)
    assert session.packing.kept == kept


def test_another_shape_with_the_same_packing() -> None:
    """One pixel of many channels is a row of a matrix."""
    pool = accel.conv2d(1, 8, 3, 3, 24, 3, shift=8)
    session = Session(SQUARE)
    inputs = any_inputs(pool, 0)
    x = session.run(accel.build(pool, SQUARE), inputs)["out"]
    assert x.shape == (1, 24, 1, 1)
    row = x.reshape(1, -1)
    session.run(accel.build(accel.dense(1, 24, 5, shift=6), SQUARE), {"data": row})
    assert (session.packing.kept, session.packing.unpacked) == (1, 0)
    assert repr(row) == "SessionTensor(int8[1, 24])"
    with refused(
        ShapeError, "the new shape is [5, 5]; the tensor's is [1, 24, 1, 1], and has another number of values"
    ):
        x.reshape(5, 5)


def test_a_tensor_of_two_packings() -> None:
    """The product takes a matrix by rows and by columns. Each copy is made once."""
    session = Session("gemm8x8")
    values = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
    square = session.tensor(values)
    program = gemm_program(16, 16, 16, config="gemm8x8")
    for _ in range(2):
        found = session.run(program, {"A": square, "B": square})["C"]
        wide = values.astype(np.int32)
        np.testing.assert_array_equal(found.numpy(), (wide @ wide).astype(np.int8))
    assert (session.packing.packed, session.packing.kept) == (2, 2)


def test_a_bias_beyond_the_folded_range() -> None:
    """The program runs without the fold, also for a second run."""
    session = Session("tiny")
    program = accel.build(LAST, "tiny")
    inputs = any_inputs(LAST, 0)
    inputs["bias"][0] = np.iinfo(np.int32).max
    sizes = []
    for _ in range(5):
        out = session.run(program, inputs)["out"]
        np.testing.assert_array_equal(out.numpy(), expected(LAST, inputs))
        sizes.append(session.results[-1].image.size)
    assert sizes[3:] == sizes[1:3]


def test_constants_and_missing_inputs() -> None:
    workload = accel.gemm(8, 16, 24)
    B = np.random.default_rng(0).integers(-128, 128, (24, 16), dtype=np.int8)
    program = accel.build(workload, "tiny", constants={"B": B})
    session = Session("tiny", seed=3)
    for _ in range(2):
        found = session.run(program)["C"].numpy()
        np.testing.assert_array_equal(found, program.run(seed=3).outputs["C"])


def test_memory_that_a_program_never_writes_is_zero() -> None:
    """Its own part of DRAM reuses the memory of a freed output."""
    session = Session("tiny")
    small = gemm_program(3, 9, 5)
    session.run(small)
    start = session.results[0].image.tensors[-1].offset
    elements = 27 // TINY.out_element_bytes + 1
    copy = handmade(
        Load(memory=Memory.ACC_8BIT, y_size=1, x_size=elements, x_stride=elements, push_next=True),
        Store(
            memory=Memory.OUT, pop_prev=True, dram_base=elements, y_size=1, x_size=elements, x_stride=elements
        ),
        regions=(Region(name="zeros", offset=0, nbytes=2 * elements * TINY.out_element_bytes),),
    )
    session.run(copy)
    image = session.results[1].image
    assert image.regions[0].offset <= start
    assert not session._dram.read(image.regions[0].offset, image.regions[0].nbytes).any()


def test_a_wrong_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session("tiny")
    program = gemm_program()
    monkeypatch.setattr(Program, "reference", lambda _, inputs: {"C": np.full((3, 9), 1, np.int8)})
    with pytest.raises(MismatchError, match="of 27 output elements differ"):
        session.run(program)


def test_invalid_uses_are_refused() -> None:
    with refused(AccelError, "the backend is 'simm'; did you mean 'sim'?"):
        Session("tiny", backend="simm")
    with refused(AccelError, "an engine is given with the backend 'sim'; only 'rtl' takes it"):
        Session("tiny", engine="pysim")
    with refused(AccelError, "the seed is -1; it must be an integer from 0 on"):
        Session("tiny", seed=-1)
    session = Session("tiny")
    program = gemm_program()
    with refused(ShapeError, "'a' is not an input of the program; valid are A, B"):
        session.run(program, {"a": np.zeros((3, 5), np.int8)})
    with refused(ShapeError, "A has shape [5, 3]; it must be [3, 5]"):
        session.run(program, {"A": np.zeros((5, 3), np.int8)})
    out = session.run(program)["C"]
    with refused(ShapeError, "A is int8[3, 9]; it must be int8[3, 5]"):
        session.run(program, {"A": out})
    with refused(ShapeError, "A is a tensor of another session; pass its values, from numpy()"):
        Session("tiny").run(program, {"A": out})
    with refused(ShapeError, "the tensor's array is float64; it must be int8, uint8 or int32"):
        session.tensor(np.zeros(3))
    with refused(ShapeError, "the tensor's array is a list; it must be an int8, uint8 or int32 array"):
        session.tensor([1])  # type: ignore[arg-type]
    other = gemm_program(config="gemm8x8")
    message = (
        f"the program is compiled for batch={other.config.batch}; the session's machine has {TINY.batch}"
    )
    with refused(ProgramError, message):
        session.run(other)


def test_a_window_that_is_full() -> None:
    small = TINY.override({"mem_size": 1 << 15})
    program = accel.build(accel.gemm(8, 16, 24), small)
    session = Session(small)
    kept = [session.run(program)]
    with pytest.raises(ProgramError, match="the session needs 128 more bytes of DRAM"):
        kept += [session.run(program) for _ in range(9)]
    kept.clear()
    session.run(program)


@pytest.mark.parametrize("backend", ["sim", "functional"])
def test_a_closed_session_refuses_runs(backend: str) -> None:
    program = gemm_program()
    values = np.ones((3, 5), np.int8)
    with Session("tiny", backend=backend) as session:
        given = session.tensor(values)
        out = session.run(program, {"A": given})["C"]
        found = out.numpy()
    message = "the session is closed; open another one, and call numpy() before close()"
    for use in (
        lambda: session.run(program),
        lambda: session.tensor(values),
        out.numpy,
        out.reshape(-1).numpy,
        given.numpy,
    ):
        with refused(AccelError, message):
            use()
    session.close()
    assert found.shape == (3, 9)
    assert session.results[0].mismatches == 0

"""The interpreter executes printed nests, at every stage."""

import numpy as np
import pytest

import accel
from accel import te
from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.nest import nest_interpreter
from accel.compiler.nest.epilogue_lowering import lower_epilogue
from accel.compiler.nest.nest import (
    AluCall,
    Assign,
    BlockEpilogue,
    Call,
    Copy,
    For,
    Guard,
    Nest,
    Node,
    TileEpilogue,
    ZeroRegion,
    walk_nodes,
)
from tests.compiler import gemms
from tests.expect import refused
from tests.thorough import diagonal


@pytest.mark.parametrize(("name", "sizes"), diagonal(("gemm8x8", "vta", "tiny", "ecp5"), gemms.SIZES))
@pytest.mark.parametrize(("transpose_a", "transpose_b"), gemms.TRANSPOSITIONS)
def test_every_stage_of_a_gemm_gives_what_numpy_gives(
    name: str, sizes: tuple[int, int, int], transpose_a: bool, transpose_b: bool
) -> None:
    g = gemms.gemm(*sizes, transpose_a, transpose_b)
    inputs = gemms.operands(g, seed=sum(sizes))
    want = gemms.product(g, inputs, transpose_a, transpose_b)
    for stage, nest in gemms.stages(g, accel.machine(name)):
        np.testing.assert_array_equal(te.interpret(nest, inputs)["C"], want, err_msg=stage)


def epilogue() -> te.Schedule:
    """Return a computation of sums, bias, shift and saturation on chip."""
    workload = accel.gemm(20, 30, 12, bias=True, relu=True, shift=6)
    C, S, m = workload.output, workload.sums, accel.machine("gemm8x8")
    s = te.create_schedule(C)
    s[C].tile("y", "x", 8, 8)
    R = s.cache_write(C, m.acc_buffer)
    s[S].set_scope(m.acc_buffer)
    s[S].tile("y", "x", "k", 8, 8, 8)
    for name, scope in (("A", m.inp_buffer), ("B", m.wgt_buffer), ("bias", m.acc_buffer)):
        s.cache_read(s.tensor(name), scope)
    s[S].tensorize("yi", m.gemm)
    s[R].tensorize("yi", m.alu)
    return s


def test_every_stage_of_an_epilogue_gives_what_numpy_gives() -> None:
    s = epilogue()
    rng = np.random.default_rng(0)
    block_shape = {"A": 40, "B": 40, "bias": 4000}
    inputs = {
        t.name: rng.integers(-block_shape[t.name], block_shape[t.name], t.shape, dtype=t.dtype)
        for t in s.inputs
    }
    sums = inputs["A"].astype(int) @ inputs["B"] + inputs["bias"]
    want = np.clip(np.maximum(sums >> 6, 0), -128, 127)
    assert len(np.unique(want)) > 100
    for nest in (te.lower(s), te.tensorize(s)):
        np.testing.assert_array_equal(te.interpret(nest, inputs)["C"], want)
    result = accel.build(s, "gemm8x8").run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], want)


def test_all_kinds_of_nodes_occur_here() -> None:
    """So the tests above cover all kinds of nodes."""
    seen: set[type[Node]] = set()
    nests = [te.lower(epilogue()), te.tensorize(epilogue()), guarded()]
    for nest in nests:
        seen |= {type(node) for node in walk_nodes(nest.body)}
        posts = [node for node in walk_nodes(nest.body) if isinstance(node, TileEpilogue)]
        seen |= {type(node) for post in posts for node in walk_nodes(lower_epilogue(post))}
    assert seen == {For, Guard, Assign, ZeroRegion, Call, Copy, TileEpilogue, BlockEpilogue, AluCall}


def guarded() -> Nest:
    A = te.placeholder((10, 3), name="A")
    C = te.compute((10, 3), lambda y, x: A[y, x] * 2, name="C")
    s = te.create_schedule(C)
    yo, yi = s[C].split("y", 4)
    s[C].reorder(yi, yo)
    return te.lower(s)


def test_guards() -> None:
    values = np.arange(30, dtype=np.int8).reshape(10, 3)
    np.testing.assert_array_equal(te.interpret(guarded(), {"A": values})["C"], values * 2)


def test_large_nests_run_loop_by_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results equal those of a nest that runs at once."""
    values = np.arange(30, dtype=np.int8).reshape(10, 3)
    whole = te.interpret(guarded(), {"A": values})["C"]
    monkeypatch.setattr(nest_interpreter, "_MAX_GRID", 5)
    np.testing.assert_array_equal(te.interpret(guarded(), {"A": values})["C"], whole)


def test_buffers_hold_garbage_at_the_start() -> None:
    """So a nest that forgets to write zeros has wrong results."""
    g = gemms.gemm(4, 4, 4)
    nest = te.lower(te.create_schedule(g.C))
    without = replace(nest, body=_without_fills(nest.body))
    inputs = gemms.operands(g)
    assert not (te.interpret(without, inputs)["C"] == te.interpret(nest, inputs)["C"]).any()


def _without_fills(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    kept = [node for node in nodes if not isinstance(node, ZeroRegion)]
    return tuple(
        For(node.var, node.extent, _without_fills(node.body)) if isinstance(node, For) else node
        for node in kept
    )


def test_the_inputs_are_not_changed() -> None:
    values = np.arange(30, dtype=np.int8).reshape(10, 3)
    before = values.copy()
    te.interpret(guarded(), {"A": values})
    np.testing.assert_array_equal(values, before)


def test_a_missing_input() -> None:
    with refused(ShapeError, "the input A is missing"):
        te.interpret(guarded(), {})

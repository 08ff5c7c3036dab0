"""The verifier finds planted damage of every kind, after every pass."""

from collections.abc import Callable
from typing import TypeVar

import pytest

import accel
from accel import te
from accel.base.records import replace
from accel.compiler.expr.epilogue_operators import Bias, Combine
from accel.compiler.expr.scalar_expressions import Binary, Const, Guarded, IterVar, Read
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest import nest_passes
from accel.compiler.nest.nest import (
    AppliedOp,
    Assign,
    BlockEpilogue,
    Buffer,
    Call,
    Copy,
    For,
    Guard,
    Nest,
    Node,
    Region,
    TileEpilogue,
    ZeroRegion,
    walk_nodes,
)
from accel.compiler.nest.nest_passes import PASSES, Compilation, NestPass, run_passes
from accel.compiler.nest.nest_verifier import NestError, verify_nest
from tests.compiler.running import as_it_is

NodeT = TypeVar("NodeT", bound=Node)
M = accel.machine("gemm8x8")
PROGRAM = accel.build(accel.gemm(20, 40, 24, bias=True, residual=True, shift=8), M, vthreads=2)


def nest(name: str = "tensorized") -> Nest:
    return run_passes(Compilation(schedule=PROGRAM.schedule()), to=name).nest


def changed(found: Nest, kind: type[NodeT], change: Callable[[NodeT], Node | None], which: int = 0) -> Nest:
    """Return a nest with one statement of a kind replaced or removed."""
    target = [node for node in walk_nodes(found.body) if isinstance(node, kind)][which]

    def rewritten(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        result: list[Node] = []
        for node in nodes:
            if node is target:
                other = change(target)
                result += [] if other is None else [other]
            elif isinstance(node, For | Guard | TileEpilogue):
                result.append(replace(node, body=rewritten(node.body)))
            else:
                result.append(node)
        return tuple(result)

    return replace(found, body=rewritten(found.body))


def found_in(damaged: Nest, problem: str, **options: bool) -> None:
    with pytest.raises(NestError, match=problem):
        verify_nest(damaged, **options)


def moved(region: Region, by: int, d: int = 0) -> Region:
    ranges = list(region.ranges)
    ranges[d] = Range(Binary("+", ranges[d].start, Const(by)), ranges[d].extent)
    return replace(region, ranges=tuple(ranges))


# --- valid nests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", PASSES, ids=lambda one: one.name)
def test_every_pass_leaves_a_sound_nest(one: NestPass) -> None:
    verify_nest(nest(one.name), allows_vthreads=one.has_vthreads)
    verify_nest(te.lower(PROGRAM.schedule()))


def test_tests_verify_after_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier finds the damage of a pass before the next pass runs."""
    seen: list[str] = []

    def damaged(compilation: Compilation) -> Compilation:
        seen.append("damaged")
        return replace(compilation, nest=replace(compilation.nest, inputs=()))

    assert nest_passes.VERIFY_AFTER_PASSES
    bad = NestPass(name="folded", run=damaged)
    monkeypatch.setattr(nest_passes, "PASSES", (PASSES[0], bad, PASSES[2]))
    with pytest.raises(NestError, match="is not declared"):
        run_passes(Compilation(schedule=PROGRAM.schedule()))
    assert seen == ["damaged"]
    monkeypatch.setattr(nest_passes, "VERIFY_AFTER_PASSES", False)
    run_passes(Compilation(schedule=PROGRAM.schedule()))


# --- planted damage ----------------------------------------------------------------------------------


def test_a_variable_that_no_loop_binds() -> None:
    stray = IterVar("stray", 4)
    found_in(
        changed(nest(), Copy, lambda c: replace(c, target=moved_by(c.target, stray))),
        "stray in .*stray is bound by no loop",
    )
    unbound = "stray in stray is bound by no loop"
    found_in(changed(nest(), Call, lambda c: Guard(((stray, Const(2)),), (c,))), unbound)
    found_in(changed(nest(), For, lambda f: replace(f, extent=stray)), f"{unbound}, in 'for")


def moved_by(region: Region, v: IterVar) -> Region:
    first, *rest = region.ranges
    return replace(region, ranges=(Range(Binary("+", first.start, v), first.extent), *rest))


def test_a_variable_that_is_bound_twice() -> None:
    damaged = changed(nest(), For, lambda f: replace(f, body=(replace(f, body=f.body),)))
    found_in(damaged, "is bound inside its own loop")


def test_a_loop_that_runs_too_far() -> None:
    damaged = changed(nest(), For, lambda f: replace(f, extent=Const(f.var.extent + 1)))
    found_in(damaged, r"xo2 runs to 3; it has 2 values")


def test_virtual_threads_that_are_not_lowered() -> None:
    found_in(nest(), "the virtual threads of .* are not lowered", allows_vthreads=False)


@pytest.mark.parametrize("name", [one.name for one in PASSES])
def test_a_buffer_that_is_not_declared(name: str) -> None:
    whole = nest(name)
    for n, _ in enumerate(whole.locals):
        found_in(replace(whole, locals=whole.locals[:n] + whole.locals[n + 1 :]), "is not declared")
    stranger = Buffer("stranger", (8, 8), "int32", M.acc_buffer)
    for more in ({"refill_loops": {stranger: ()}}, {"sum_limits": {stranger: 1}}):
        whole_too = replace(whole, **{key: {**getattr(whole, key), **new} for key, new in more.items()})
        found_in(whole_too, "stranger is not declared")


def test_memory_that_is_read_before_it_is_written() -> None:
    for which in range(4):
        found_in(changed(nest(), Copy, lambda c: None, which), "is read before anything is written to it")
    damaged = changed(nest(), Call, lambda c: None)
    assert next(n for n in walk_nodes(nest().body) if isinstance(n, Call)).form == "reset"
    found_in(damaged, "S is read before anything is written to it")


def test_outputs_that_nobody_writes() -> None:
    last = len([n for n in walk_nodes(nest().body) if isinstance(n, Copy)]) - 1
    found_in(changed(nest(), Copy, lambda c: None, last), "C is never written")


def test_boxes_beyond_their_buffers() -> None:
    for which in range(5):
        ahead = changed(nest(), Copy, lambda c: replace(c, source=moved(c.source, 1)), which)
        behind = changed(nest(), Copy, lambda c: replace(c, target=moved(c.target, 1)), which)
        before = changed(nest(), Copy, lambda c: replace(c, source=moved(c.source, -1)), which)
        found_in(ahead, "ends at")
        found_in(behind, "ends at")
        found_in(before, "starts at -1")
    found_in(changed(nest(), Call, lambda c: replace(c, output=moved(c.output, 64))), "ends at")
    found_in(changed(nest(), BlockEpilogue, lambda f: replace(f, target=moved(f.target, 64))), "ends at")


def test_buffer_sets_that_do_not_exist() -> None:
    damaged = changed(
        nest("threads"), Copy, lambda c: replace(c, target=replace(c.target, set_index=Const(2))), 3
    )
    found_in(damaged, "is in set 2")


def test_copies_of_another_size() -> None:
    def shorter(c: Copy) -> Copy:
        first, *rest = c.source.ranges
        return replace(c, source=replace(c.source, ranges=(Range(first.start, Const(1)), *rest)))

    found_in(changed(nest(), Copy, shorter, which=1), "differ in size")


def test_operands_in_the_wrong_memory() -> None:
    def swapped(c: Call) -> Call:
        return replace(c, inputs=c.inputs[::-1], dims=(c.dims[0], *c.dims[:0:-1]))

    found_in(changed(nest(), Call, swapped, which=1), "is not in inp_buffer")


def test_blocks_that_are_too_large() -> None:
    def larger(c: Call) -> Call:
        _, *rest = c.output.ranges
        return replace(c, output=replace(c.output, ranges=(Range(Const(0), Const(9)), *rest)))

    found_in(changed(nest(), Call, larger), r"is not a block of \(8, 8\)|ends at")
    found_in(changed(nest(), Call, lambda c: replace(c, dims=((0, 0), *c.dims[1:]))), "has the dimensions")


def test_epilogue_operators_without_their_operand() -> None:
    def bare(f: BlockEpilogue) -> BlockEpilogue:
        assert isinstance(f.ops[0].op, Bias)
        return replace(f, ops=(AppliedOp(f.ops[0].op), *f.ops[1:]))

    found_in(changed(nest(), BlockEpilogue, bare), "Bias has no block to read")
    found_in(changed(nest(), BlockEpilogue, lambda f: replace(f, ops=())), "an epilogue has no operators")


def test_elements_out_of_range() -> None:
    scalar = te.lower(te.create_schedule(PROGRAM.outputs))

    def beyond(a: Assign) -> Assign:
        first, *rest = a.target.indices
        return replace(a, target=Read(a.target.tensor, (Binary("+", first, Const(1)), *rest)))

    found_in(changed(scalar, Assign, beyond), "is at 20 of 20 elements")
    found_in(changed(scalar, ZeroRegion, lambda f: None), "S is read before anything is written to it")


def test_guarded_reads_may_lie_outside_elsewhere() -> None:
    """Neighbours in the padding are such reads. Without their guard the nest is invalid."""
    program = as_it_is(accel.max_pool2d(1, 8, 5, 4, 3, stride=(1, 2), padding=1), M)
    whole = run_passes(Compilation(schedule=program.schedule())).nest

    def unconditional(f: BlockEpilogue) -> BlockEpilogue:
        (guarded,) = f.ops[0].op.parts()
        assert isinstance(guarded, Guarded)
        return replace(f, ops=(replace(f.ops[0], op=Combine("max", guarded.value)), *f.ops[1:]))

    found_in(changed(whole, BlockEpilogue, unconditional), "starts at -1")

"""Epilogue operators become passes over a tile, in order."""

import pytest

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.nest.epilogue_lowering import lower_epilogue
from accel.compiler.nest.nest import TileEpilogue, walk_nodes
from accel.compiler.nest.nest_text import format_node
from tests.expect import refused

M = accel.machine("gemm8x8")


@pytest.fixture
def post() -> TileEpilogue:
    program = accel.build(accel.gemm(20, 40, 24, bias=True, shift=8), M)
    (found,) = (n for n in walk_nodes(te.tensorize(program.schedule()).body) if isinstance(n, TileEpilogue))
    return found


def test_each_is_a_pass_over_the_tile(post: TileEpilogue) -> None:
    together = [line.strip() for line in format_node(post)]
    loops, steps = together[:-4], together[-4:]
    passes = [[line.strip() for line in format_node(node)] for node in lower_epilogue(post)]
    assert passes == [[*loops, step] for step in steps]
    assert all(line.startswith("for ") for line in loops)
    assert [step.split("(")[0] for step in steps] == ["vdla.add", "vdla.shr", "vdla.max", "vdla.min"]


def test_the_intrinsic_decides(post: TileEpilogue) -> None:
    (inner,) = (node for node in post.body)
    other = replace(post.block_epilogue, intrin=M.gemm)

    def changed(node: object) -> object:
        return other if node == post.block_epilogue else replace(node, body=tuple(map(changed, node.body)))  # type: ignore[type-var,attr-defined]

    with refused(TensorizeError, "gemm8x8 does not compute epilogues; the machine's alu does"):
        lower_epilogue(TileEpilogue((changed(inner),)))  # type: ignore[arg-type]

"""Pointers to blocks: their start, and their increments per iteration."""

import pytest

from accel import te
from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.codegen.block_addresses import Addresses
from accel.compiler.expr.scalar_expressions import Binary, Const, IterVar
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.nest import Call, For, Nest, walk_nodes
from accel.compiler.target.machine import machine
from tests.compiler import gemms
from tests.expect import refused

M = machine("gemm8x8")


@pytest.fixture
def nest() -> Nest:
    """A nest over 16 x 24 elements of C, in one tile of 2 x 3 blocks."""
    g = gemms.gemm(16, 24, 8)
    s = te.create_schedule(g.C)
    sums = s[gemms.cache(s, g, M)]
    for name in ("AL", "BL"):
        s[name].compute_root()
    sums.tile(*sums.axis, g.k, 8, 8, 8)
    sums.tensorize("yi", M.gemm)
    return te.tensorize(s)


def product(nest: Nest) -> tuple[Call, dict[str, IterVar]]:
    call = next(n for n in walk_nodes(nest.body) if isinstance(n, Call) and n.inputs)
    return call, {n.var.name: n.var for n in walk_nodes(nest.body) if isinstance(n, For)}


def test_pointers_count_blocks(nest: Nest) -> None:
    """Rows of blocks are three blocks apart in the accumulators."""
    addresses = Addresses(nest)
    call, loops = product(nest)
    box = [loops["yo"], loops["xo"]]
    pointer = addresses.pointer(call.output, box, {loops["yo"]: 1, loops["xo"]: 2})
    assert (pointer.scope, pointer.base, pointer.strides) == ("acc_buffer", 1 * 3 + 2, (3, 1))
    left = addresses.pointer(call.inputs[0], box, {loops["yo"]: 1, loops["xo"]: 2})
    assert (left.scope, left.base, left.strides) == ("inp_buffer", 1, (1, 0))


def test_blocks_that_start_inside_an_element_are_refused(nest: Nest) -> None:
    call, loops = product(nest)
    first, *rest = call.output.ranges
    shifted = Range(Binary("+", first.start, Const(4)), first.extent)
    region = replace(call.output, ranges=(shifted, *rest))
    with refused(
        TensorizeError,
        "CL[yo*8+4:yo*8+12][xo*8:xo*8+8] starts inside an element of 8; tiles must be multiples of the "
        "intrinsic's block",
    ):
        Addresses(nest).pointer(region, [], {loops["yo"]: 0, loops["xo"]: 0})

"""Nests as text: each kind of statement has its own form."""

import accel
from accel import te
from accel.compiler.expr.scalar_expressions import Const, IterVar
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.nest import Buffer, For, HostPack, IdentityMatrix, Region, ZeroBuffer, ZeroRegion
from accel.compiler.nest.nest_text import format_node, format_region
from accel.image.packed_layout import BlockDiagonal

M = accel.machine("gemm8x8")
S = Buffer("S", (16, 8), "int32", M.acc_buffer)
W = Buffer("W", (8, 4), "int8", None)
v = IterVar("v", 2)


def test_host_statements_have_forms_of_their_own() -> None:
    wide = Buffer("W_wide", (8, 8), "int8", None)
    assert format_node(HostPack(wide, W, BlockDiagonal(rows=4, merged=2))) == [
        "host.widen(W_wide, W, groups=2)"
    ]
    assert format_node(IdentityMatrix(wide)) == ["host.identity(W_wide)"]
    assert format_node(ZeroBuffer(S), 1) == ["    vdla.fill_zero(S)"]


def test_regions_show_what_they_are_of() -> None:
    whole = Region(S, (Range(Const(0), Const(16)), Range(Const(0), Const(8))), (Const(16), Const(8)))
    part = Region(S, (Range(v * 8, Const(8)), Range(v, Const(1))), (Const(16), Const(8)))
    outside = Region(W, (Range(Const(0), Const(8)), Range(Const(0), Const(4))), (Const(8), Const(4)))
    assert [format_region(r) for r in (whole, part, outside)] == ["S", "S[v*8:v*8+8][v]", "W[0:8][0:4]"]
    assert format_region(outside, (1, 2)) == "W[0:8][0:4:2]"


def test_unrolled_loops_are_written_out() -> None:
    part = Region(S, (Range(v * 8, Const(8)), Range(Const(0), Const(8))), (Const(16), Const(8)))
    loop = For(v, Const(2), (ZeroRegion(part),), is_unrolled=True)
    assert format_node(loop) == ["S[0:8][0:8] = 0", "S[8:16][0:8] = 0"]
    assert format_node(For(v, Const(2), (ZeroRegion(part),), is_vthread=True))[0] == "for v in vthread(2):"


def test_epilogue_operators_are_printed_in_order() -> None:
    program = accel.build(accel.gemm(8, 8, 8, bias=True, relu=True, shift=4), M)
    lines = te.format_nest(te.tensorize(program.schedule())).splitlines()
    first = next(n for n, line in enumerate(lines) if "vdla.add(" in line)
    assert [line.split("(")[0].strip() for line in lines[first : first + 4]] == [
        "vdla.add",
        "vdla.shr",
        "vdla.max",
        "vdla.min",
    ]

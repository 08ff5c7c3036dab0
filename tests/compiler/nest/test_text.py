"""Nests as text: every kind of statement has a form of its own."""

import accel
from accel import te
from accel.compiler.expr.scalar import Const, IterVar
from accel.compiler.expr.window import Range
from accel.compiler.nest.nest import Buffer, Clear, Fill, For, Identity, Region, Widen
from accel.compiler.nest.text import format_node, format_region
from accel.image.layout import BlockDiagonal

M = accel.machine("gemm8x8")
S = Buffer("S", (16, 8), "int32", M.acc_buffer)
W = Buffer("W", (8, 4), "int8", None)
v = IterVar("v", 2)


def test_what_the_host_does_is_told_apart() -> None:
    wide = Buffer("W_wide", (8, 8), "int8", None)
    assert format_node(Widen(wide, W, BlockDiagonal(rows=4, merged=2))) == ["host.widen(W_wide, W, groups=2)"]
    assert format_node(Identity(wide)) == ["host.identity(W_wide)"]
    assert format_node(Clear(S), 1) == ["    vdla.fill_zero(S)"]


def test_regions_show_what_they_are_of() -> None:
    whole = Region(S, (Range(Const(0), Const(16)), Range(Const(0), Const(8))), (Const(16), Const(8)))
    part = Region(S, (Range(v * 8, Const(8)), Range(v, Const(1))), (Const(16), Const(8)))
    outside = Region(W, (Range(Const(0), Const(8)), Range(Const(0), Const(4))), (Const(8), Const(4)))
    assert [format_region(r) for r in (whole, part, outside)] == ["S", "S[v*8:v*8+8][v]", "W[0:8][0:4]"]
    assert format_region(outside, (1, 2)) == "W[0:8][0:4:2]"


def test_unrolled_loops_are_written_out() -> None:
    part = Region(S, (Range(v * 8, Const(8)), Range(Const(0), Const(8))), (Const(16), Const(8)))
    loop = For(v, Const(2), (Fill(part),), unrolled=True)
    assert format_node(loop) == ["S[0:8][0:8] = 0", "S[8:16][0:8] = 0"]
    assert format_node(For(v, Const(2), (Fill(part),), threads=True))[0] == "for v in vthread(2):"


def test_post_operators_stand_one_below_the_other() -> None:
    program = accel.build(accel.gemm(8, 8, 8, bias=True, relu=True, shift=4), M)
    lines = te.format_nest(te.tensorize(program.schedule())).splitlines()
    first = next(n for n, line in enumerate(lines) if "vdla.add(" in line)
    assert [line.split("(")[0].strip() for line in lines[first : first + 4]] == [
        "vdla.add",
        "vdla.shr",
        "vdla.max",
        "vdla.min",
    ]

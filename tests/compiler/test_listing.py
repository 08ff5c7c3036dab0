"""The published listing runs, prints the published nests, and equals the published code."""

import contextlib
import io
import re
import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import accel
from accel import te
from tests.compiler import gemms
from tests.compiler.conftest import GOLDEN

LISTING = Path(__file__).parents[2] / "docs" / "listing.py"
LEFT_OUT = [
    'vdla = accel.machine("gemm8x8")',
    "y, x = s[C].op.axis",
    "BL = s.cache_read(B, vdla.wgt_buffer)",
]
"""Lines that the slides leave out."""


@pytest.fixture(scope="module")
def listing() -> tuple[dict[str, Any], str]:
    """Run the listing; return its names and its output."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = runpy.run_path(str(LISTING))
    return names, printed.getvalue()


@pytest.mark.parametrize("heading", ["Algorithm", "Loop tiling", "Caches and tensorization"])
def test_it_prints_the_published_nests(
    listing: tuple[dict[str, Any], str], golden: Callable[[str, str], None], heading: str
) -> None:
    sections = dict(part.split("\n", 1) for part in listing[1].split("# ")[1:])
    assert len(sections) == 3
    golden(heading.lower().replace(" ", "_") + ".txt", sections[heading])


def test_it_is_the_published_code_except_for_documented_changes() -> None:
    code = LISTING.read_text(encoding="utf-8").split('"""', 2)[2]
    code = re.sub(r'"""(.|\n)*?"""|, (name|dtype)="\w+"', "", code)
    lines = [line.split("  #")[0].rstrip() for line in code.splitlines()]
    lines = [line for line in lines if line and not re.match(r"#|print\(|import |from ", line)]
    published = (GOLDEN / "listing.txt").read_text(encoding="utf-8")
    expected = published.replace('"fuse_', '"fused_').splitlines()
    assert [line for line in lines if line not in LEFT_OUT] == expected
    assert Counter(lines) - Counter(expected) == Counter(LEFT_OUT)


def test_the_declared_intrinsic_gives_the_same_nest(listing: tuple[dict[str, Any], str]) -> None:
    """It names no scopes, so its operands have the order that its emitters expect."""
    names, _ = listing
    s, vdla = names["s"], names["vdla"]
    with_machines_own = te.format_nest(te.tensorize(s))
    assert names["gemm8x8"] is not vdla.gemm8x8
    s[names["CL"]].tensorize(names["yi"], names["gemm8x8"])
    assert te.format_nest(te.tensorize(s)) == with_machines_own


@pytest.mark.parametrize("sizes", [(24, 16, 40), (7, 13, 5)])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), gemms.TRANSPOSITIONS)
def test_the_declared_intrinsic_computes_the_same(
    listing: tuple[dict[str, Any], str], sizes: tuple[int, int, int], transpose_a: bool, transpose_b: bool
) -> None:
    machine = accel.machine("gemm8x8")
    g = gemms.gemm(*sizes, transpose_a, transpose_b)
    s = te.create_schedule(g.C)
    gemms.tile(s, g, machine)
    s[gemms.cache(s, g, machine)].tensorize("yi", listing[0]["gemm8x8"])
    inputs = gemms.operands(g)
    result = accel.build(s, machine).run(inputs)
    assert (result.outputs["C"] == gemms.product(g, inputs, transpose_a, transpose_b)).all()

"""Options that operators declare: names in any case, sizes as one or two numbers, and tile sides."""

from typing import Any

import click
import pytest

import accel as package
from accel.cli.operator_commands import tile_sides
from accel.compiler.operators.operator_registry import OPERATORS
from accel.run.program import Program
from tests.cli.conftest import Shell

CONV = ["compile", "conv2d", "--config", "tiny", "-o", "p.accel"]


@pytest.mark.parametrize(
    "sizes",
    [
        ["--ic", 5, "--oc", 9, "--size", "6x7", "--kernel", 3],
        ["--IC", 5, "--OC", 9, "--H", 6, "--w", 7, "--kernel", "3x3", "--N", 1],
        ["--ic", 5, "--oc", 9, "--h", 6, "--W", 7, "--kernel", 3, "--batch", 1],
    ],
)
def test_sizes_by_their_names_in_python(sizes: list[object], accel: Shell) -> None:
    accel(*CONV, *sizes)
    assert Program.load("p.accel").code == package.build(package.conv2d(1, 5, 6, 7, 9, 3), "tiny").code


def test_products_by_their_names_in_python(accel: Shell) -> None:
    accel("compile", "gemm", "--M", 3, "--N", 9, "--K", 5, "--config", "tiny", "-o", "p.accel")
    assert Program.load("p.accel").code == package.build(package.gemm(3, 9, 5), "tiny").code


@pytest.mark.parametrize("operator", [one for one in OPERATORS.values() if one.variant is not None])
def test_a_family_with_its_option_compiles_the_operator(operator: Any, accel: Shell) -> None:
    sizes = ["-c", 8, "--size", 6, "--config", "tiny", "-o", "p.accel"]
    sizes += [] if operator.variant.value == "global" else ["--kernel", 2]
    accel("compile", operator.command, *sizes)
    first = Program.load("p.accel")
    accel(
        "compile",
        operator.variant.family.command,
        operator.variant.family.option,
        operator.variant.value,
        *sizes,
    )
    assert Program.load("p.accel").code == first.code


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--ic", 5, "--oc", 9, "--kernel", 3],
            "Missing option '--size'. (see 'accel compile conv2d --help')",
        ),
        (
            ["--ic", 5, "--oc", 9, "--h", 3, "--kernel", 3],
            "Missing option '--size'. (see 'accel compile conv2d --help')",
        ),
        (
            ["--ic", 5, "--size", 6, "--kernel", 3],
            "Missing option '--oc'. (see 'accel compile conv2d --help')",
        ),
        (
            ["--ic", 5, "--oc", 9, "--size", 6, "--w", 6, "--kernel", 3],
            "W of conv2d is given twice, as size and as W",
        ),
    ],
)
def test_sizes_that_are_missing_or_given_twice(options: list[object], message: str, accel: Shell) -> None:
    accel.refused(*CONV, *options, message=message)


# --- tiles -------------------------------------------------------------------------------------------

LAYER = [*CONV, "--ic", 8, "--oc", 16, "--size", 8, "--kernel", 3, "--padding", 1]


@pytest.mark.parametrize(
    ("name", "text", "sides"),
    [
        ("gemm", "64", {"tile_m": 64}),
        ("gemm", "64x128x16", {"tile_m": 64, "tile_n": 128, "step_k": 16}),
        ("gemm", "k=16, M=8", {"tile_m": 8, "step_k": 16}),
        ("conv2d", "16X4", {"tile_oc": 16, "tile_h": 4}),
        ("conv2d", "tile_w=3,kh=1", {"tile_w": 3, "step_kh": 1}),
        ("max_pool2d", "c=16,h=2", {"tile_c": 16, "tile_h": 2}),
    ],
)
def test_sides(name: str, text: str, sides: dict[str, int]) -> None:
    assert tile_sides(OPERATORS[name].planner.sides, text) == sides


def test_the_requested_tile_is_used(accel: Shell) -> None:
    found = accel(*LAYER, "--tile", "oc=8,h=2", "--vthreads", 2, "--json").json
    assert (found["plan"]["tile_oc"], found["plan"]["tile_h"], found["vthreads"]) == (8, 2, 2)
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0
    compared = accel(*LAYER, "--tile", "8x2", "--explain", "--json").json["candidates"]
    assert {(plan["tile_oc"], plan["tile_h"]) for plan in compared} == {(8, 2)}
    assert len({plan["tile_w"] for plan in compared}) > 1


def test_the_prediction_is_printed(accel: Shell) -> None:
    printed = dict(line.split(None, 1) for line in accel(*LAYER, "--tile", "8x2").text.splitlines())
    assert printed["tile"].startswith("8 x 2 x ")
    assert printed["tile"].endswith("(oc x h x w x ic x kh)")
    cycles = int(printed["predicted"].split()[0].replace(",", ""))
    assert accel("run", "p.accel", "--json").json["cycles"] == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        ("8x", "'8x' is not of the form OCxHxWxICxKHxN, or oc=N,..."),
        ("1x2x3x4x5x6x7", "'1x2x3x4x5x6x7' is not of the form OCxHxWxICxKHxN, or oc=N,..."),
        ("hh=4", "'hh' is not a side; did you mean 'h'?"),
        ("h=4,H=2", "h is given twice"),
        ("８x2", "'８x2' is not of the form OCxHxWxICxKHxN, or oc=N,..."),  # noqa: RUF001  # a wide 8
        ("h=four", "'h=four' is not of the form OCxHxWxICxKHxN, or oc=N,..."),
    ],
)
def test_bad_tiles(tile: str, message: str, accel: Shell) -> None:
    where = "Invalid value for '--tile': "
    accel.refused(*LAYER, "--tile", tile, message=f"{where}{message} (see 'accel compile conv2d --help')")


def test_impossible_tiles(accel: Shell) -> None:
    accel.refused(
        *LAYER, "--tile", "oc=12", message="tile_oc is 12; on configuration 'tiny' it must be a multiple of 8"
    )
    accel.refused(
        *LAYER, "--tile", "h=0", message="tile_h is 0; on configuration 'tiny' it must be a positive integer"
    )
    accel.refused(
        *LAYER,
        *("--tile", "16x8x8", "--vthreads", 2, "--set", "acc_bytes=1KiB"),
        message="the tile is tile_oc 16, tile_h 8, tile_w 8 for 2 virtual threads; it does not fit "
        "configuration 'tiny with acc_bytes=1024', or leaves nothing to do for each thread",
    )
    accel(*LAYER, "--save-schedule", "s.toml")
    message = (
        "--tile is given; with --schedule, the schedule's steps set the tiles. "
        "(see 'accel compile conv2d --help')"
    )
    accel.refused(*LAYER, "--tile", "8x2", "--schedule", "s.toml", message=message)


def test_phases_of_a_transposed_convolution_stay_whole(accel: Shell) -> None:
    layer = ["compile", "conv2d-transpose", *LAYER[2:], "--stride", 2]
    accel(*layer, "--tile", "h=4,w=2")
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0
    accel.refused(
        *layer,
        *("--tile", "h=3"),
        message="a tile has 3 rows; of this transposed convolution it must have a multiple of 2, or all 15",
    )


def test_a_bad_tile_is_a_usage_error() -> None:
    with pytest.raises(click.BadParameter), click.Context(click.Command("c")):
        tile_sides(OPERATORS["gemm"].planner.sides, "?")

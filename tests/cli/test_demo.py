"""``accel demo``."""

import pytest

from tests.cli.conftest import Shell


@pytest.mark.parametrize("config", ["tiny", "gemm8x8"])
def test_the_demo_shows_each_stage_and_the_check(config: str, accel: Shell) -> None:
    text = accel("demo", "--size", 24, "--config", config).text
    titles = [line[:2] for line in text.splitlines() if line[:1].isdigit()]
    assert titles == [f"{n}." for n in range(1, 9)]
    for word in ("fused_gemm", "push_dep_to", "LOAD.INP", "utilization", "waits for token", "all equal"):
        assert word in text
    assert len(text.splitlines()) < 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--size", 0],
            "Invalid value for '--size': 0 is not in the range 1<=x<=4096. (see 'accel demo --help')",
        ),
        (
            ["--config", "x"],
            "'x' is no configuration; valid are ecp5, ecp5-int8, gemm8x8, gemm8x8-int8, tiny, tiny-int8, "
            "vta, vta-int8; the path of a TOML or JSON file works too",
        ),
    ],
)
def test_bad_input(arguments: list[object], message: str, accel: Shell) -> None:
    accel.refused("demo", *arguments, message=message)

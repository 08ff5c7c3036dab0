"""The table of plans that were compared: whole numbers on any terminal."""

import io

import pytest
from rich.console import Console

import accel
from accel.cli.explain import candidate_dict, candidates_table
from accel.compiler.operators.default import candidates, planner_of

CONV = accel.conv2d(1, 128, 56, 56, 128, 3, padding=1, bias=True, shift=8)
LARGE = accel.gemm(2048, 2048, 2048, shift=8)


def lines(workload: accel.Workload, width: int | None) -> list[str]:
    config = accel.machine("vta").config
    found = candidates(workload, config)
    text = io.StringIO()
    table = candidates_table(found, planner_of(workload), config, width)
    Console(file=text, width=width or 10_000).print(table)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("workload", [CONV, LARGE, accel.max_pool2d(1, 64, 56, 56, 2)], ids=lambda w: w.name)
@pytest.mark.parametrize("width", [72, 80, 100, None])
def test_numbers_are_never_cut(workload: accel.Workload, width: int | None) -> None:
    config = accel.machine("vta").config
    found = candidates(workload, config)
    text = lines(workload, width)
    assert not any("…" in line for line in text)
    assert all(len(line.rstrip()) <= (width or 10_000) for line in text)
    best = candidate_dict(found[0], planner_of(workload), config)
    (chosen,) = (line for line in text if line.startswith("chosen"))
    assert f"{best['predicted_cycles']:,}" in chosen
    assert f"{best['read_bytes']:,}" in chosen
    assert best["bound_by"] in chosen
    assert sum("." in line.split()[0] for line in text if line.split()[0][0].isdigit()) >= 9


def test_a_narrow_terminal_lacks_columns_and_a_wide_one_none() -> None:
    wide, narrow = "\n".join(lines(CONV, None)), "\n".join(lines(CONV, 80))
    for word in ("stores", "loads", "predicted", "bound by", "outermost"):
        assert word in wide
    assert "predicted" in narrow
    assert "stores" not in narrow

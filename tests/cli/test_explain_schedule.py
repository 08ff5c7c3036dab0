"""The table of compared plans: whole numbers on any terminal."""

import io

import pytest
from rich.console import Console

import accel
from accel.base.records import replace
from accel.cli.explain_schedule import candidate_dict, candidates_table, choice_reason
from accel.compiler.operators.default_schedule import find_candidates, planner_of

CONV = accel.conv2d(1, 128, 56, 56, 128, 3, padding=1, bias=True, shift=8)
LARGE = accel.gemm(2048, 2048, 2048, shift=8)


def lines(workload: accel.Workload, width: int | None) -> list[str]:
    config = accel.machine("vta").config
    found = find_candidates(workload, config)
    text = io.StringIO()
    table = candidates_table(found, planner_of(workload), config, width)
    Console(file=text, width=width or 10_000).print(table)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("workload", [CONV, LARGE, accel.max_pool2d(1, 64, 56, 56, 2)], ids=lambda w: w.name)
@pytest.mark.parametrize("width", [72, 80, 100, None])
def test_numbers_are_never_cut(workload: accel.Workload, width: int | None) -> None:
    config = accel.machine("vta").config
    found = find_candidates(workload, config)
    text = lines(workload, width)
    assert not any("…" in line for line in text)
    assert all(len(line.rstrip()) <= (width or 10_000) for line in text)
    best = candidate_dict(found[0], planner_of(workload), config)
    (chosen,) = (line for line in text if line.startswith("chosen"))
    assert f"{best['predicted_cycles']:,}" in chosen
    assert f"{best['read_bytes']:,}" in chosen
    assert (best["busiest"] in chosen) == ("busiest" in text[0])
    assert width is not None or "busiest" in text[0]
    assert sum("." in line.split()[0] for line in text if line.split()[0][0].isdigit()) >= 9


def test_a_narrow_terminal_lacks_columns_and_a_wide_one_none() -> None:
    wide, narrow = "\n".join(lines(CONV, None)), "\n".join(lines(CONV, 80))
    for word in ("stores", "loads", "predicted", "busiest", "outermost"):
        assert word in wide
    assert "predicted" in narrow
    assert "stores" not in narrow.partition("left out for want of width: ")[0]
    assert "stores" in narrow.partition("left out for want of width: ")[2]


def test_the_choice_is_explained_if_another_plan_is_predicted_to_be_faster() -> None:
    config = accel.machine("vta").config
    found = find_candidates(accel.gemm(64, 96, 48, shift=4), config)
    fastest = min(found, key=lambda one: one.prediction.cycles)
    assert fastest is not found[0]
    saved = fastest.read_bytes - found[0].read_bytes
    reason = choice_reason(found)
    assert f"predicted to take {round(fastest.prediction.cycles):,} cycles, 0.13% fewer: " in reason
    assert reason.endswith(f"this plan reads {saved:,} bytes fewer from DRAM")
    assert choice_reason([fastest, found[0]]) == ""
    slower = replace(
        found[0], prediction=replace(found[0].prediction, cycles=1.5 * fastest.prediction.cycles)
    )
    assert "50.0% fewer: that plan prefetches" in choice_reason([slower, fastest])
    fewer = replace(fastest, read_bytes=found[0].read_bytes - 1)
    assert "that plan prefetches" in choice_reason([found[0], fewer])

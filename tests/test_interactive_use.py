"""What a user of a Python prompt or a notebook meets: the functions of ``accel``, reprs, and pictures."""

import pydoc
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel import te
from accel.base.html_summary import Bar, html_summary
from accel.network.digits import digits_network
from accel.run.program import Program
from accel.views.saved_run import SavedRun


@pytest.fixture(scope="module")
def program() -> Program:
    return accel.build(accel.gemm(128, 96, 128, shift=7), "vta")


def test_a_tab_shows_the_api_alone() -> None:
    shown = [name for name in dir(accel) if not name.startswith("_")]
    assert set(shown) <= {*accel.__all__, "benchmarks", "debug", "operations", "sweeps", "te", "views"}
    assert {"advise", "verify", "quantize", "package", "diff", "check", "lockstep", "machines"} <= set(shown)
    assert "program.run" in (accel.__doc__ or "")


def test_help_of_the_package_is_a_page_that_names_everything() -> None:
    text = pydoc.render_doc(accel, renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 100
    assert all(re.search(rf"\b{name}\b", text) for name in dir(accel) if name != "__version__")
    assert "vthreads" in pydoc.render_doc(accel.build, renderer=pydoc.plaintext)


def test_a_program_is_checked_by_itself_or_by_its_file(program: Program, tmp_path: Path) -> None:
    program.save(tmp_path / "gemm.accel")
    assert accel.check(program).ok
    assert accel.check(tmp_path / "gemm.accel") == accel.check(program)


def test_two_runs_are_compared_by_results_or_by_files(program: Program, tmp_path: Path) -> None:
    fast, slow = program.run(), program.run(read_latency=400)
    SavedRun.of(slow).save(tmp_path / "slow.accelrun")
    found = accel.diff(fast, tmp_path / "slow.accelrun")
    assert found.figures["cycles"] == (fast.cycles, slow.cycles)
    cause = found.figures["largest_cause"]
    assert cause[0].startswith("compute slots")
    assert "latency" in cause[1]
    assert found.to_dict()["figures"]["bound_by"]["a"] == fast.bound_by


def test_lockstep_needs_no_engine_of_ones_own() -> None:
    assert accel.lockstep(accel.build(accel.gemm(8, 8, 8), "tiny")).equal


def test_machines_are_names_that_build_takes() -> None:
    for name in accel.machines():
        assert accel.machine(name).config.name == name


def test_a_result_shows_itself(program: Program, tmp_path: Path) -> None:
    result = program.run()
    assert "compute" in str(result.timeline())
    result.timeline(name="chart").save(tmp_path / "run.svg")
    result.report().save(tmp_path / "run.html")
    assert "<svg" in (tmp_path / "run.svg").read_text()
    assert "critical path" in (tmp_path / "run.html").read_text().lower()
    assert result.advise().bound
    assert sum(one.cycles for one in result.critical_path()) == result.cycles


def test_tensors_are_added_and_scaled_from_either_side() -> None:
    a = te.placeholder((4, 4), name="A", dtype="int32")
    values = np.arange(16, dtype=np.int32).reshape(4, 4)
    expected = {2 * a: 2 * values, a * 2: 2 * values, 3 + a: values + 3, a @ a: values @ values}
    for tensor, value in expected.items():
        assert np.array_equal(te.evaluate([tensor], {"A": values})[tensor.name], value)


def test_reprs_are_short_and_notebooks_see_a_table(program: Program) -> None:
    network = digits_network()
    built = network.build("vta-int8")
    shown: list[Any] = [
        *(program, program.run(), accel.machine("vta"), program.check(), program.schedule()),
        *(network, built, built.run(record=True)),
    ]
    for one in shown:
        page = one._repr_html_()
        assert len(repr(one)) <= 200, repr(one)
        assert page.startswith("<table>")
        assert page.count("<tr>") >= 2
        assert page.count("<tr>") <= 32
        assert "<script" not in page


def test_names_are_escaped_in_notebooks() -> None:
    page = html_summary("<b>", [("<script>", "&")] * 20, [Bar("<i>", 7.0, "<u>")])
    assert page.count("<tr>") == 17
    assert "and 5 more" in page
    assert "<script>" not in page
    assert "width:160px" in page

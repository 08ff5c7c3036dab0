"""``accel compile onnx --rewrite`` and ``--rules``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accel.base.result_cache import VARIABLE
from accel.formats.onnx_export import export_onnx
from accel.network import graph_rewriting
from tests.cli.conftest import Shell
from tests.network.networks import residual_network

GRAPH = residual_network("uint8")
RULES = """
from accel.graph.elementwise_operators import Identity
from accel.graph.movement_operators import Transpose
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.pattern import make, op, tensor
from accel.rewriting.rule import Rule
"""


@pytest.fixture
def session(accel: Shell) -> Shell:
    (accel.folder / "m.onnx").write_bytes(export_onnx(GRAPH))
    return accel


def _compiled(shell: Shell, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = shell("compile", "onnx", "m.onnx", *options, "-o", "net.accel", "--json").json
    return found


@pytest.mark.parametrize("search", ["none", "greedy"])
def test_without_a_search_there_is_no_report(session: Shell, search: str) -> None:
    assert _compiled(session, "--rewrite", search)["rewriting"] is None


@pytest.mark.parametrize("search", ["backtrack", "saturate"])
def test_a_search_reports_rules_cycles_and_limits(session: Shell, search: str) -> None:
    found = _compiled(session, "--rewrite", search, "--rewrite-seconds", "2")["rewriting"]
    assert found["search"] == search
    assert 0 < found["cycles_after"] <= found["cycles_before"]
    assert found["graphs"] >= 1
    assert found["ended_by"] in {"complete", "graphs", "nodes", "iterations", "seconds"}
    assert session("run", "net.accel", "--json").json["mismatches"] == 0


def test_explain_lists_them(session: Shell) -> None:
    shown = session("compile", "onnx", "m.onnx", "--rewrite", "backtrack", "--explain").out
    assert "rewritten by backtrack: " in shown
    assert "predicted; rules: " in shown


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("RULES = 1", "has no RULES"),
        ("raise ValueError('oh')", "raises ValueError: oh"),
        (
            RULES + "RULES = [Rule(name='a', text='b', pattern=op(Transpose, tensor('x')),"
            " replacement=lambda match: match['x'], instance=None)]",
            "has no generator of instances",
        ),
    ],
)
def test_a_bad_file_of_rules_is_one_line(session: Shell, code: str, message: str) -> None:
    (session.folder / "rules.py").write_text(code)
    failed = session("compile", "onnx", "m.onnx", "--rules", "rules.py", code=2)
    assert message in failed.err
    assert len(failed.err.splitlines()) == 1


def test_rules_without_a_search(session: Shell) -> None:
    (session.folder / "rules.py").write_text("RULES = []\n")
    assert _compiled(session, "--rules", "rules.py")["rewriting"] is None
    (session.folder / "rules.py").write_text(
        f"{RULES}\nfrom accel.rewriting.movement_rules import *\n"
        "from dataclasses import replace\nRULES = [replace(TRANSPOSE_PAIR, name='mine')]\n"
    )
    assert _compiled(session, "--rules", "rules.py")["rewriting"]["search"] == "greedy"
    failed = session("compile", "onnx", "m.onnx", "--rules", "rules.py", "--rewrite", "none", code=2)
    assert "rules are given" in failed.err


def test_run_and_verify_take_the_same_options(session: Shell) -> None:
    options = ("--rewrite", "backtrack", "--rewrite-seconds", "2", "--json")
    ran = session("run", "m.onnx", *options).json
    assert ran["mismatches"] == 0
    assert ran["rewriting"]["search"] == "backtrack"
    assert session("run", "m.onnx", "--json").json["rewriting"] is None
    verified = session("verify", "m.onnx", "--backend", "functional", *options).json
    assert (verified["ok"], verified["rewriting"]["search"]) == (True, "backtrack")
    shown = session("run", "m.onnx", "--rewrite", "backtrack").out
    assert "rewritten" in shown
    assert "predicted; rules: " in shown


def test_without_a_compilation_they_are_refused(session: Shell) -> None:
    session.refused(
        "verify",
        "m.onnx",
        "--rewrite",
        "backtrack",
        message="--rewrite is given, and --backend is not; only with it the network is compiled",
    )
    _compiled(session)
    session.refused(
        "run",
        "net.accel",
        "--rules",
        "rules.py",
        message="--rules is given, and 'net.accel' is already compiled; it is for models",
    )
    session.refused(
        "run",
        "net.accel",
        "--rewrite-seconds",
        "3",
        message="--rewrite-seconds is given, and 'net.accel' is already compiled; it is for models",
    )


def test_a_search_is_kept_in_the_cache(
    session: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    rules = session.folder / "rules.py"
    rules.write_text("RULES = []\n")
    searches: list[str] = []
    search = graph_rewriting.rewrite_graph

    def counted(*arguments: Any, **options: Any) -> Any:
        searches.append(options["search"])
        return search(*arguments, **options)

    monkeypatch.setattr(graph_rewriting, "rewrite_graph", counted)
    options = ("--rewrite", "backtrack", "--rules", "rules.py")
    first = _compiled(session, *options)["rewriting"]
    content = (session.folder / "net.accel").read_bytes()
    assert _compiled(session, *options)["rewriting"] == first
    assert (session.folder / "net.accel").read_bytes() == content
    assert session("run", "m.onnx", *options, "--json").json["rewriting"] == first
    assert searches == ["backtrack"]
    rules.write_text("RULES = ()\n")
    _compiled(session, *options)
    _compiled(session, *options, "--relaxation", "1.2")
    _compiled(session, *options, "--rewrite-seconds", "3")
    assert searches == ["backtrack"] * 4
    rules.write_text("raise ValueError('oh')\n")
    assert "raises ValueError: oh" in session("compile", "onnx", "m.onnx", *options, code=2).err

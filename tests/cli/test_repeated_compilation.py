"""``accel compile onnx`` of a model that was compiled before."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel.base.result_cache import VARIABLE, ResultCache
from accel.cli import compile_network
from accel.network.digits import MODEL
from tests.cli.conftest import Shell

TIMED = {"output", "compile_seconds"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultCache:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return ResultCache(tmp_path / "cache")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The models that the compiler is asked to compile."""
    found: list[Path] = []
    compiles = compile_network.compile_onnx

    def counted(model: Path, **options: object) -> int:
        found.append(model)
        return compiles(model, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(compile_network, "compile_onnx", counted)
    return found


def test_a_model_is_compiled_once(
    accel: Shell, cache: ResultCache, compilations: list[Path], tmp_path: Path
) -> None:
    first = accel("compile", "onnx", MODEL, "-o", tmp_path / "first.accel", "--json").json
    again = accel("compile", "onnx", MODEL, "-o", tmp_path / "again.accel", "--json").json
    assert len(compilations) == 1
    assert (tmp_path / "first.accel").read_bytes() == (tmp_path / "again.accel").read_bytes()
    assert {name: first[name] for name in first.keys() - TIMED} == {
        name: again[name] for name in again.keys() - TIMED
    }
    assert again["output"] == str(tmp_path / "again.accel")
    table = accel("compile", "onnx", MODEL, "-o", tmp_path / "table.accel").text
    assert "the default, --config changes it" in table
    assert len(compilations) == 1


def test_other_options_machines_and_models_are_compiled(
    accel: Shell, cache: ResultCache, compilations: list[Path], tmp_path: Path
) -> None:
    config, model = tmp_path / "mine.toml", tmp_path / "model.onnx"
    shutil.copy(MODEL, model)
    calls = (
        ("--config", "vta-int8"),
        ("--config", "vta-int8", "--set", "bus_bits=128"),
        ("--config", "vta-int8", "--batch", "2"),
        ("--config", "vta-int8", "--rewrite", "backtrack"),
        ("--config", "vta-int8", "--rewrite", "backtrack", "--relaxation", "1.1"),
        ("--config", config),
    )
    config.write_text('name = "mine"\npost = 1\n')
    for number, options in enumerate(calls, 1):
        for _ in range(2):
            accel("compile", "onnx", model, *options, "-o", tmp_path / "net.accel")
        assert len(compilations) == number
    config.write_text('name = "mine"\npost = 1\nbus_bits = 128\n')
    accel("compile", "onnx", model, "--config", config, "-o", tmp_path / "net.accel")
    assert len(compilations) == len(calls) + 1
    model.write_bytes(model.read_bytes() + b"\x32\x00")  # an empty doc_string
    accel("compile", "onnx", model, "--config", "vta-int8", "-o", tmp_path / "net.accel")
    assert len(compilations) == len(calls) + 2


def test_what_the_entry_lacks_is_compiled(
    accel: Shell, cache: ResultCache, compilations: list[Path], tmp_path: Path
) -> None:
    plain = accel("compile", "onnx", MODEL, "-o", tmp_path / "net.accel").text
    explained = accel("compile", "onnx", MODEL, "--explain").text
    assert len(compilations) == 2
    assert len(explained) > len(plain)
    for entry in cache.entries():
        if entry.kind == "network":
            entry.path.write_bytes(b"damaged")
    accel("compile", "onnx", MODEL, "-o", tmp_path / "again.accel")
    assert len(compilations) == 3
    assert (tmp_path / "net.accel").read_bytes() == (tmp_path / "again.accel").read_bytes()


def test_targets_are_checked_as_by_the_compiler(accel: Shell, cache: ResultCache, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    shutil.copy(MODEL, model)
    for _ in range(2):
        outcome = accel("compile", "onnx", model, "-o", model, code=2)
        assert str(model) in outcome.err
        accel("compile", "onnx", model, "-o", tmp_path / "net.accel")
    assert model.read_bytes() == MODEL.read_bytes()


def test_compiling_again_imports_no_compiler(accel: Shell, cache: ResultCache, tmp_path: Path) -> None:
    command = ["compile", "onnx", str(MODEL), "-o", str(tmp_path / "net.accel")]
    script = (
        f"import sys\nfrom accel.cli.app import main\ntry:\n    main({command})\n"
        f"finally:\n    print(*sys.modules)"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "accel.cli.repeated_compilation" in loaded
    assert loaded & {"numpy", "onnx", "accel.compiler", "accel.network.network", "accel.core"} == set()

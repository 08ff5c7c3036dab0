import subprocess
import sys
from pathlib import Path

import pytest

from accel.base.notices import listening
from accel.compiler.target.machine import machine
from accel.core.config import Config
from accel.hw.engines import model_cache


def test_a_model_depends_on_all_that_its_hardware_imports() -> None:
    """It does not depend on the package's base: errors, argument checks, files."""
    script = (
        "import sys, accel.hw.sim_top\n"
        "for name, module in sorted(sys.modules.items()):\n"
        "    if name.startswith('accel.') and not name.startswith('accel.base'): print(module.__file__)"
    )
    listed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    imported = {Path(line).resolve() for line in listed.splitlines()}
    assert any(path.parts[-2:] == ("units", "store.py") for path in imported)
    known = {path.resolve() for path in model_cache.source_files()}
    assert sorted(imported - known) == []


def test_a_changed_source_is_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    unit = tmp_path / "unit.py"

    def model(text: str) -> Path:
        unit.write_text(text)
        identity = {"sources": model_cache._digest([unit])}
        return model_cache._kept("test", ".so", identity, Path.touch)

    first = model("one = 1\n")
    assert model("one = 1\n") == first
    assert model("one = 2\n") != first


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="models are built on Linux only")
def test_a_build_reports_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step generates, each object is one, and the last one links. A kept model has none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = machine("tiny").config

    def generate(_: Config, folder: Path) -> list[model_cache.Source]:
        parts = []
        for name in "ab":
            path = folder / f"{name}.cpp"
            path.write_text(f"int {name}() {{ return 0; }}\n")
            parts.append(model_cache.Source(path=path))
        return parts

    found: list[tuple[int, int]] = []
    with listening(lambda done, total: found.append((done, total))):
        built = model_cache.model("test", config, [], [], generate)
        assert built.exists()
        assert sorted(found) == [(1, 4), (2, 4), (3, 4), (4, 4)]
        assert model_cache.model("test", config, [], [], generate) == built
    assert len(found) == 4

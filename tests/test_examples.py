"""The notebooks in examples/ run from their first to their last cell, and show what they are for."""

import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")
def test_notebooks(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    kinds = {kind for one in outputs for kind in one.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds
    assert not [one for one in outputs if one.output_type == "stream" and one.name == "stderr"]


def test_there_are_some() -> None:
    assert NOTEBOOKS


def test_lessons_become_notebooks(tmp_path: Path) -> None:
    script = ROOT / "docs" / "lesson_notebooks.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    written = {path.stem: nbformat.read(path, as_version=4) for path in tmp_path.glob("*.ipynb")}
    assert {"naive", "tokens", "solutions"} <= written.keys()
    for notebook in written.values():
        nbformat.validate(notebook)
    naive = [cell.source for cell in written["naive"].cells if cell.cell_type == "code"]
    assert naive[0].startswith("from accel import te")
    assert "```" not in "".join(cell.source for cell in written["naive"].cells)
    nbclient.NotebookClient(written["solutions"], timeout=120, kernel_name="python3").execute(
        cwd=str(tmp_path)
    )

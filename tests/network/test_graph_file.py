import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.network.graph_file import VERSION, load_graph, save_graph
from tests.network.networks import residual_network

GRAPH = residual_network("uint8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_graph(GRAPH, tmp_path / "g.graph")
    return tmp_path / "g.graph"


def change_manifest(path: Path, changes: dict[str, object]) -> None:
    """The file with other entries in its manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["program.json"] = json.dumps(json.loads(members["program.json"]) | changes).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_round_trip(file: Path) -> None:
    loaded = load_graph(file)
    assert (loaded.name, loaded.nodes, loaded.tensors) == (GRAPH.name, GRAPH.nodes, GRAPH.tensors)
    assert (loaded.inputs, loaded.outputs) == (GRAPH.inputs, GRAPH.outputs)
    assert loaded.constants.keys() == GRAPH.constants.keys()
    for name, values in GRAPH.constants.items():
        assert loaded.constants[name].dtype == values.dtype
        assert np.array_equal(loaded.constants[name], values)


def test_files_are_deterministic(file: Path) -> None:
    other = file.with_name("h.graph")
    save_graph(load_graph(file), other)
    assert other.read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "accel-program"}, "it holds no graph"),
        ({"version": VERSION + 1}, "its format version is 2; this release reads up to 1"),
        ({"graph": {}}, "its manifest"),
        ({"graph": 7}, "its manifest"),
        ({"version": None}, "its manifest"),
    ],
)
def test_damaged_files(file: Path, changes: dict[str, object], message: str) -> None:
    change_manifest(file, changes)
    with pytest.raises(ProgramError, match=r"graph '.*g\.graph'") as error:
        load_graph(file)
    assert message in str(error.value)


def test_files_that_are_no_graphs(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no archive")
    with pytest.raises(ProgramError, match="is not a graph file; save_graph writes"):
        load_graph(tmp_path / "x")
    with pytest.raises(ProgramError, match="cannot be read"):
        load_graph(tmp_path / "missing")
    with pytest.raises(ProgramError, match="cannot be written"):
        save_graph(GRAPH, tmp_path / "missing" / "x")

"""Files that the studio looks at, by names that are no paths."""

from pathlib import Path

import pytest

from accel.base.errors import AccelError
from accel.network.digits import MODEL
from accel.run.program import Program
from accel.studio.files import Files
from accel.studio.state import State
from accel.studio.view import view_of
from tests.expect import refused
from tests.programs import gemm_program

PROGRAM = Path(__file__).parents[1] / "programs" / "gemm.s"


def test_files_have_names() -> None:
    with Files((PROGRAM, MODEL, PROGRAM)) as files:
        assert files.names == ["gemm.s", MODEL.name, "programs/gemm.s"]
        name = files.add("../../etc/gemm.s", PROGRAM.read_bytes())
        assert name.endswith(".s")
        assert "/" not in name
        path = Path(files.paths()[name])
        assert path.read_bytes() == PROGRAM.read_bytes()
        assert files.add("../../etc/gemm.s", PROGRAM.read_bytes()) == name
    assert not path.exists(), "uploaded files go with the studio"


def test_the_oldest_upload_is_forgotten() -> None:
    with Files() as files:
        names = [files.add("a.s", str(n).encode()) for n in range(18)]
        assert files.names == names[2:]


def test_what_is_nothing_to_look_at(tmp_path: Path) -> None:
    with refused(AccelError, f"'{tmp_path}' is no file; give a network or a program"):
        Files((tmp_path,))
    with (
        Files() as files,
        refused(AccelError, "'a.py' is nothing to look at; it must end in .onnx, .tflite, .accel, .s"),
    ):
        files.add("a.py", b"")


def test_a_file_that_is_not_known_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "p.accel"
    gemm_program().save(path)
    for name in (str(path), "p.accel", "../p.accel"):
        with pytest.raises(AccelError, match="is no file that the studio was given"):
            view_of(State(file=name), paths={"other.accel": str(path)})


def test_a_program_from_a_file_has_its_machine_and_another_timing(tmp_path: Path) -> None:
    path = tmp_path / "p.accel"
    gemm_program().save(path)
    usual = view_of(State(file="p.accel"), paths={"p.accel": str(path)})
    assert usual["figures"]["cycles"] == Program.load(path).run().cycles
    slow = view_of(State(file="p.accel", settings={"read_latency": 500}), paths={"p.accel": str(path)})
    assert slow["figures"]["cycles"] > usual["figures"]["cycles"]
    assert slow["machine"]["read_latency"] == 500
    assert usual["schedule"] is None
    with pytest.raises(AccelError, match="bound when the program was compiled"):
        view_of(State(file="p.accel", settings={"block_in": 8}), paths={"p.accel": str(path)})


def test_a_network_and_one_of_its_layers() -> None:
    state = State(file="digits.onnx", machine="vta-int8")
    view = view_of(state, paths={"digits.onnx": str(MODEL)})
    assert {"layers", "table", "memory", "timeline", "critical"} <= {one["name"] for one in view["sections"]}
    assert not any(" style=" in one["html"] for one in view["sections"])
    layer = view["chart"]["groups"][0]
    assert layer["name"] == "layer"
    assert len(layer["of"]) == view["figures"]["instructions"]
    alone = [one for one in view["layers"] if one["state"] is not None]
    assert layer["labels"] == [one["name"] for one in alone]
    one = view_of(State.from_data({**alone[1]["state"], "machine": "vta-int8"}))
    assert 0 < one["figures"]["cycles"] < view["figures"]["cycles"]
    assert "--scale scale.npy" in one["commands"]
    assert "accel compile onnx digits.onnx --config vta-int8" in view["commands"]

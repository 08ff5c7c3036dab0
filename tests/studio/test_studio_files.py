"""Files of the studio, known by names that are no paths."""

from pathlib import Path

import pytest

from accel.base.errors import AccelError
from accel.network.digits import MODEL
from accel.run.program import Program
from accel.studio.studio_files import StudioFiles
from accel.studio.studio_state import StudioState
from accel.studio.studio_view import state_view
from tests.expect import refused
from tests.programs import gemm_program

PROGRAM = Path(__file__).parents[1] / "programs" / "gemm.s"


def test_files_have_names() -> None:
    with StudioFiles((PROGRAM, MODEL, PROGRAM)) as files:
        assert files.names == ["gemm.s", MODEL.name, "programs/gemm.s"]
        name = files.add("../../etc/gemm.s", PROGRAM.read_bytes())
        assert name.endswith(".s")
        assert "/" not in name
        path = Path(files.paths()[name])
        assert path.read_bytes() == PROGRAM.read_bytes()
        assert files.add("../../etc/gemm.s", PROGRAM.read_bytes()) == name
    assert not path.exists(), "uploaded files are removed with the studio"


def test_explorations_have_names(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "space.points.json").write_text('{"exploration": 1}')
        (folder / "space.csv").touch()
    with StudioFiles((folders[0], folders[1] / "space.points.json", PROGRAM)) as files:
        assert files.explorations == ["space", "two/space"]
        assert files.names == ["gemm.s"]
        assert files.exploration("two/space") == b'{"exploration": 1}'
        with refused(AccelError, "'three' is not an exploration of the studio; valid are space, two/space"):
            files.exploration("three")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no file *.points.json; give the folder of one exploration"),
        ("[]", "holds no points of an exploration; 'accel explore' writes them to files *.points.json"),
        ("{", "is not JSON; 'accel explore' writes it again"),
        ('{"exploration": 2}', "holds no points of an exploration"),
    ],
)
def test_folders_without_an_exploration_are_refused(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "space.points.json").write_text(content)
    with pytest.raises(AccelError) as refusal:
        StudioFiles((tmp_path,))
    assert message in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_the_oldest_upload_is_removed() -> None:
    with StudioFiles() as files:
        names = [files.add("a.s", str(n).encode()) for n in range(18)]
        assert files.names == names[2:]


def test_other_files_are_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing.onnx"
    with refused(
        AccelError, f"'{missing}' is not a file; give a network, a program, or the folder of an exploration"
    ):
        StudioFiles((missing,))
    with (
        StudioFiles() as files,
        refused(
            AccelError,
            "'a.py' is neither a network nor a program; its name must end in .onnx, .tflite, .accel, .s",
        ),
    ):
        files.add("a.py", b"")


def test_unknown_files_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "p.accel"
    gemm_program().save(path)
    for name in (str(path), "p.accel", "../p.accel"):
        with pytest.raises(AccelError, match="is not a file of the studio"):
            state_view(StudioState(file=name), paths={"other.accel": str(path)})


def test_a_programs_timing_can_be_changed_but_not_its_geometry(tmp_path: Path) -> None:
    path = tmp_path / "p.accel"
    gemm_program().save(path)
    usual = state_view(StudioState(file="p.accel"), paths={"p.accel": str(path)})
    assert usual["figures"]["cycles"] == Program.load(path).run().cycles
    slow = state_view(
        StudioState(file="p.accel", settings={"read_latency": 500}), paths={"p.accel": str(path)}
    )
    assert slow["figures"]["cycles"] > usual["figures"]["cycles"]
    assert slow["machine"]["read_latency"] == 500
    assert usual["schedule"] is None
    with pytest.raises(AccelError, match="bound when the program was compiled"):
        state_view(StudioState(file="p.accel", settings={"block_in": 8}), paths={"p.accel": str(path)})


def test_a_network_and_one_of_its_layers() -> None:
    state = StudioState(file="digits.onnx", machine="vta-int8")
    view = state_view(state, paths={"digits.onnx": str(MODEL)})
    assert {"layers", "table", "memory", "timeline", "critical"} <= {one["name"] for one in view["sections"]}
    assert not any(" style=" in one["html"] for one in view["sections"])
    layer = view["chart"]["groups"][0]
    assert layer["name"] == "layer"
    assert len(layer["of"]) == view["figures"]["instructions"]
    alone = [one for one in view["layers"] if one["state"] is not None]
    assert layer["labels"] == [one["name"] for one in alone]
    one = state_view(StudioState.from_data({**alone[1]["state"], "machine": "vta-int8"}))
    assert 0 < one["figures"]["cycles"] < view["figures"]["cycles"]
    assert "--scale scale.npy" in one["commands"]
    assert "accel compile onnx digits.onnx --config vta-int8" in view["commands"]

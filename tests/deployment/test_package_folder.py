"""A package's folder: its files, and the files that it never replaces."""

import json
import zlib
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.deployment.deployment_plan import deploy_network, deploy_program
from accel.deployment.deployment_steps import Deployment
from accel.deployment.package_folder import package_files, write_package
from accel.image.test_scenario import Start
from accel.network.network import Network
from tests.cli.conftest import Shell, accel, saved  # noqa: F401
from tests.network.networks import MACHINE, Small
from tests.programs import gemm_program, handmade


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    small = Small((1, 3, 4, 4))
    small.conv("x", 'odd "name" */ é', 4)
    return deploy_network(Network(graph=small.graph('odd "name" */ é')).build(MACHINE), "small")


def test_the_manifest_describes_all_memory(deployment: Deployment, tmp_path: Path) -> None:
    """Memory filled according to the manifest equals memory before a run."""
    folder = tmp_path / "small"
    files = write_package(deployment, folder, embed=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    data = json.loads(files["manifest.json"])
    assert (data["format"], data["version"], data["name"]) == ("accel-package", 1, "small")
    assert data["files"] == {
        name: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        for name, content in files.items()
        if name != "manifest.json"
    }
    memory = np.zeros(data["memory"]["bytes"], np.uint8)
    for one in data["segments"]:
        content = files[one["file"]][one["file_offset"] :][: one["bytes"]]
        assert (zlib.crc32(content), sha256(content).hexdigest()) == (one["crc32"], one["sha256"])
        memory[one["offset"] : one["offset"] + one["bytes"]] = np.frombuffer(content, np.uint8)
    (stream,) = deployment.streams
    config = stream.image.config
    assert (
        bytes(memory[: stream.image.size])
        == stream.image.dram().read(config.mem_base, stream.image.size).tobytes()
    )
    assert data["streams"][0]["entry"] == stream.image.code_offset
    assert [step["kind"] for step in data["steps"]] == ["pack", "run", "unpack"]
    assert [one["name"] for one in data["outputs"]] == ['odd "name" */ é']


def test_a_package_is_the_same_each_time(deployment: Deployment) -> None:
    assert package_files(deployment) == package_files(deployment)


def test_only_packages_are_replaced(deployment: Deployment, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    write_package(deployment, folder, embed=True)
    with pytest.raises(ProgramError, match=r"the folder holds 'accel_driver\.c' already"):
        write_package(deployment, folder)
    files = write_package(deployment, folder, force=True)
    assert {path.name for path in folder.iterdir()} == files.keys()
    (folder / "main.c").write_text("mine")
    with pytest.raises(ProgramError, match=r"the folder holds 'main\.c' already"):
        write_package(deployment, folder, force=True)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(ProgramError, match="already"):
        write_package(deployment, folder, force=True)
    assert (folder / "main.c").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_a_failed_write_leaves_no_folder(deployment: Deployment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path, reason in (("file", "it is not a folder"), ("no/where", "there is no folder")):
        with pytest.raises(ProgramError, match=reason):
            write_package(deployment, tmp_path / path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# --- programs that cannot be packaged --------------------------------------------------------------


def test_a_program_that_starts_from_a_state() -> None:
    with pytest.raises(ProgramError, match="starts from contents of scratchpads or from tokens"):
        deploy_program(handmade(start=Start(tokens=(0, 1, 0, 0))), "p")


# --- the command -----------------------------------------------------------------------------------


def test_the_command(accel: Shell) -> None:  # noqa: F811
    gemm_program().save(accel.folder / "p-1.accel")
    found = accel("package", "p-1.accel", "-o", "out", "--json").json
    assert (found["name"], found["inputs"], found["outputs"]) == ("p_1", ["A", "B"], ["C"])
    assert found["files"] == {path.name: path.stat().st_size for path in Path("out").iterdir()}
    assert "streams" in accel("package", "p-1.accel", "-o", "out", "--force", "--name", "other").text
    assert Path("out/other.h").exists()
    accel.refused(
        "package",
        "p-1.accel",
        "-o",
        "out",
        message="folder 'out' is not empty; give another one, or --force to replace a package",
    )
    accel.refused(
        "package",
        "p-1.accel",
        "-o",
        "new",
        "--cut",
        message="--cut is given, and 'p-1.accel' holds a single program; it is for networks",
    )
    accel.refused(
        "package",
        "p-1.accel",
        "-o",
        "new",
        "--name",
        "accel",
        message="the package's name is 'accel'; names with 'accel' are the driver's, give --name",
    )

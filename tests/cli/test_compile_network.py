"""``accel compile onnx``, and the commands that accept its file."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from accel.formats.onnx_export import export_onnx
from accel.graph.graph_evaluation import evaluate
from accel.graph.movement_operators import Transpose
from accel.image.zip_archive import MANIFEST
from accel.network.model_files import DEFAULT_MACHINE
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from tests.cli.conftest import Shell
from tests.network.networks import Small, residual_network

GRAPH = residual_network("uint8")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("networks") / "net.accel"
    save_network(Network(graph=GRAPH).build(DEFAULT_MACHINE), path)
    return path


def test_from_a_model_to_outputs(accel: Shell) -> None:
    (accel.folder / "m.onnx").write_bytes(export_onnx(GRAPH))
    found = accel("compile", "onnx", "m.onnx", "-o", "net.accel", "--strict", "--json").json
    assert (found["output"], found["config"], found["host_macs"]) == ("net.accel", DEFAULT_MACHINE, 0)
    assert found["programs"] >= 1
    assert {layer["where"] for layer in found["layers"]} <= {"machine", "host"}
    data = np.arange(1260, dtype=np.uint8).reshape(1, 20, 9, 7)
    np.save("x.npy", data)
    ran = accel("run", "net.accel", "--input", "x=x.npy", "--output", "y=y.npy", "--json").json
    assert np.array_equal(np.load("y.npy"), evaluate(GRAPH, {"x": data})["y"])
    assert ran["mismatches"] == 0
    assert ran["macs"] == found["macs"]
    layers = [layer for layer in ran["layers"] if layer["where"] == "machine"]
    assert sum(layer["cycles"] for layer in layers) == ran["cycles"]


def test_a_model_has_one_file(accel: Shell) -> None:
    (accel.folder / "m.onnx").write_bytes(export_onnx(GRAPH))
    for path in ("one.accel", "two.accel"):
        found = accel("compile", "onnx", "m.onnx", "-o", path, "--json").json
        assert found["compile_seconds"] > 0
    assert Path("one.accel").read_bytes() == Path("two.accel").read_bytes()


def test_a_network_file_of_an_older_release_is_read(compiled: Path, tmp_path: Path) -> None:
    """Older releases wrote the compile time of the network and of its programs."""
    old = tmp_path / "old.accel"
    with zipfile.ZipFile(compiled) as source, zipfile.ZipFile(old, "w") as target:
        for one in source.infolist():
            content = source.read(one)
            if one.filename == MANIFEST:
                data = json.loads(content)
                assert "compile_seconds" not in content.decode()
                chains = [step["chain"]["program"] for step in data["steps"] if step["chain"]]
                for holder in (data, *chains):
                    holder["compile_seconds"] = 1.5
                content = json.dumps(data).encode()
            target.writestr(one, content)
    loaded = load_network(old)
    assert loaded.compile_seconds == 1.5
    assert {chain.program.compile_seconds for chain in loaded.chains} == {1.5}
    save_network(loaded, tmp_path / "new.accel")
    assert (tmp_path / "new.accel").read_bytes() == compiled.read_bytes()


def test_a_file_holds_constants_once(compiled: Path) -> None:
    with zipfile.ZipFile(compiled) as archive:
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    plain = sum(array.nbytes for array in GRAPH.constants.values())
    assert sum(size for name, size in sizes.items() if name.startswith("constants/")) == plain
    loaded = load_network(compiled)
    assert loaded.graph.nodes == GRAPH.nodes
    assert loaded.graph.tensors == GRAPH.tensors
    assert loaded.run(backend="functional").mismatches == {}


def test_text(accel: Shell, compiled: Path) -> None:
    said, empty, *lines = accel("run", compiled).text.splitlines()
    assert "% of the run; " in said
    assert empty == ""
    assert lines[0].split() == [
        *("layer", "operator", "where", "mapping", "MACs", "cycles", "alone", "utilization"),
        *("critical", "path"),
    ]
    assert lines[1].split()[:4] == ["a", "Conv", "+", "Clip"]
    assert any(line.startswith("compared to numpy  all 2 tensors equal") for line in lines)
    assert "on the machine (vta-npu): 100.00% of" in accel("show", compiled).text
    assert accel("show", compiled, "--stage", "graph").text.startswith("input   'x' uint8[1, 20, 9, 7]")
    assert "Conv + Add + Clip" in accel("show", compiled, "--stage", "fused").text
    assert "no plan needs less than" in accel("show", compiled, "--stage", "memory").text


def test_runs_are_saved_compared_and_advised(accel: Shell, compiled: Path) -> None:
    found = accel("run", compiled, "--save", "a.accelrun", "--advise", "--report", "r.html", "--json").json
    assert found["advice"]["tried"]
    assert found["layers"][0]["program"] == 1
    assert "What would help" in Path("r.html").read_text()
    slow = accel("run", compiled, "--set", "read_latency=200", "--save", "b.accelrun", "--advise")
    assert "what would help" in slow.text
    assert re.search(" in [ab] ", slow.text[slow.text.index("longest segments") :])
    assert slow.err.endswith("wrote b.accelrun\n")
    text = accel("diff", "a.accelrun", "b.accelrun", "--html", "d.html").text
    assert "layers" in text
    told = accel("diff", compiled, "b.accelrun", "--json").json
    assert told["figures"]["cycles"]["a"] == found["cycles"]
    more = told["b"]["cycles"] - told["a"]["cycles"]
    assert sum(one["difference"] for one in told["layers"]) == more > 0
    assert "Layers" in Path("d.html").read_text()


def test_the_only_program_of_a_network(accel: Shell, compiled: Path) -> None:
    assert "races" in accel("check", compiled).text
    assert accel("disasm", compiled).text.count("FINISH") == 1


def test_timing(accel: Shell, compiled: Path) -> None:
    base, slow = (
        accel("run", compiled, "--json", *more).json for more in ((), ("--set", "read_latency=300"))
    )
    assert slow["cycles"] > base["cycles"]
    functional = accel("run", compiled, "--backend", "functional", "--json").json
    assert (functional["cycles"], functional["mismatches"]) == (None, 0)


def test_pictures_of_each_program(accel: Shell, compiled: Path) -> None:
    accel("run", compiled, "--timeline", "net.svg", "--trace", "net.json.gz")
    assert {path.name for path in accel.folder.glob("net*.*")} >= {"net.svg", "net.json.gz"}
    small = Small((1, 8, 6, 5))
    small.conv("x", "a", 8)
    small.builder.emit(Transpose(permutation=(0, 2, 1, 3)), ["a"], "turned")  # the host computes it
    small.conv("turned", "b", 8)
    save_network(Network(graph=small.graph("b")).build(DEFAULT_MACHINE), accel.folder / "apart.accel")
    accel("run", "apart.accel", "--timeline", "a.svg", "--trace", "a.json.gz")
    found = {path.name for path in accel.folder.glob("a.*")}
    assert {"a.1.svg", "a.2.svg", "a.1.json.gz", "a.2.json.gz"} <= found
    assert "a.svg" not in found
    assert accel("run", compiled, "--timeline", "-").out.count("compute") >= 1


def test_a_report(accel: Shell, compiled: Path) -> None:
    accel("run", compiled, "--report", "r.html")
    page = (accel.folder / "r.html").read_text(encoding="utf-8")
    headings = "Layers over time", "Roofline of each layer", "Memory between layers", "Traffic by memory"
    for heading in headings:
        assert f"<h2>{heading}</h2>" in page
    assert "right: all tensors equal" in page
    assert page.count("<rect") >= 2 * 4 + 3
    message = "the backend of a report is 'functional', which does not simulate time; use 'sim' or 'rtl'"
    accel.refused(
        "run",
        compiled,
        "--backend",
        "functional",
        "--report",
        "f.html",
        message=message,
    )


def test_notes_on_the_model(accel: Shell) -> None:
    """The cycles of the nodes add up to those of a run."""
    onnx = pytest.importorskip("onnx")
    content = export_onnx(GRAPH)
    (accel.folder / "m.onnx").write_bytes(content)
    accel("compile", "onnx", "m.onnx", "-o", "net.accel", "--annotate", "noted.onnx")
    noted = onnx.load("noted.onnx")
    found = [{one.key: one.value for one in node.metadata_props} for node in noted.graph.node]
    ran = accel("run", "net.accel", "--json").json
    assert sum(int(one.get("accel.cycles", 0)) for one in found) == ran["cycles"]
    assert {one["accel.where"] for one in found if "accel.where" in one} == {"machine", "host"}
    assert {one.key: one.value for one in noted.metadata_props}["accel.cycles"] == str(ran["cycles"])
    accel.refused(
        "compile", "onnx", "m.onnx", "--annotate", "m.onnx",
        message="--annotate would overwrite 'm.onnx', which is read as MODEL.onnx; give another file",
    )  # fmt: skip
    accel.refused(
        "compile", "onnx", "m.tflite", "--annotate", "out.onnx",
        message="--annotate is given, and 'm.tflite' is TensorFlow Lite's; it is for ONNX models",
    )  # fmt: skip


def test_a_model_is_compiled_and_run_in_one_go(accel: Shell) -> None:
    (accel.folder / "m.onnx").write_bytes(export_onnx(GRAPH))
    accel("compile", "onnx", "m.onnx", "--config", "gemm8x8-int8")
    direct = accel("run", "m.onnx", "--config", "gemm8x8-int8", "--json").json
    assert direct["cycles"] == accel("run", "m.accel", "--json").json["cycles"]
    assert direct["config"] == "gemm8x8-int8"
    assert direct["headline"]["share"] > 0
    assert accel("run", "m.onnx", "--json").json["config"] == "vta-npu"
    note = "the default, --config changes it"
    assert note in accel("run", "m.onnx").text
    assert note not in accel("run", "m.onnx", "--config", "vta-npu").text + accel("run", "m.accel").text
    accel.refused(
        "run", "m.accel", "--config", "vta-int8",
        message="--config is given, and 'm.accel' is already compiled; it is for models",
    )  # fmt: skip


def test_the_headline_names_the_layer_with_the_most_unused_cycles(accel: Shell) -> None:
    found = accel("run", "digits", "--set", "bus_bits=256", "--json").json
    layers = [one for one in found["layers"] if one["cycles"]]
    worst = max(layers, key=lambda one: one["cycles"] - one["macs"] / 256)
    said = f"{worst['name']} loses the most, {worst['cycles']:,} cycles where its MACs take "
    assert found["headline"]["step"].startswith(said)
    products = sum(one["macs"] for one in layers) / 256
    assert found["headline"]["ideal"] == (
        f"the nominal MACs take {products:,.0f} of the {found['cycles']:,} cycles at full rate"
    )


def test_a_utilization_above_100_percent_is_explained(accel: Shell) -> None:
    above = "above 100 %: conv4_quant; zeros around pictures count as MACs, but take no time"
    assert above in accel("run", "digits", "--set", "bus_bits=256").text
    assert "above 100 %" not in accel("run", "digits").text


def test_digits_run_by_name(accel: Shell) -> None:
    found = accel("run", "digits", "--json").json
    assert found["mismatches"] == 0
    assert [layer["name"] for layer in found["layers"]][1] == "conv1_quant"
    accel("compile", "gemm", "-m", 2, "-n", 2, "-k", 2, "--config", "tiny", "-o", "digits")
    assert "micro-ops" in accel("run", "digits").text  # a file with this name comes first


def test_refused(accel: Shell, compiled: Path) -> None:
    (accel.folder / "m.onnx").write_bytes(export_onnx(GRAPH))
    (accel.folder / "bad.onnx").write_bytes(b"no model")
    name = str(compiled)
    assert "wrote m.accel" in accel("compile", "onnx", "m.onnx").err
    assert accel("compile", "onnx", "bad.onnx", "-o", "n.accel", code=2).err.count("\n") == 1
    accel.refused(
        "compile", "onnx", "m.onnx", "-o", "n.accel", "--config", "vta",
        message="vta has post=0; networks are compiled for machines with post=1, as vta-npu",
    )  # fmt: skip
    accel.refused(
        "run", compiled, "--order", "random", "--backend", "functional",
        message=f"--order random is given, and {name!r} holds a network; it is for single programs",
    )  # fmt: skip
    np.save("f.npy", np.zeros((1, 20, 9, 7), np.float32))
    accel.refused(
        "run", compiled, "--input", "x=f.npy",
        message="input 'x' has dtype float32; it must be uint8",
    )  # fmt: skip
    assert "is not an output of the network" in accel("run", compiled, "--output", "z=z.npy", code=2).err
    assert "is one of programs" in accel("show", compiled, "--stage", "nest", code=2).err
    assert "stage 'nets' is none" in accel("show", compiled, "--stage", "nets", code=2).err


@pytest.mark.parametrize("key", ["graph", "steps", "config"])
def test_damage(accel: Shell, compiled: Path, key: str) -> None:
    with zipfile.ZipFile(compiled) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(members["program.json"])
    for wrong in (None, [], {}, 3):
        data[key] = wrong
        members["program.json"] = json.dumps(data).encode()
        with zipfile.ZipFile("bad.accel", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        assert accel("run", "bad.accel", code=2).err.startswith("accel: network 'bad.accel'")


def test_a_network_that_is_not_quantized_gets_a_hint(accel: Shell) -> None:
    """The network runs entirely on the host, which its user may not expect."""
    weights = np.ones((2, 3, 1, 1), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 4])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = accel.folder / "float.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    assert (
        "'accel quantize' turns a network into integers"
        in accel("compile", "onnx", path, "-o", "net.accel").text
    )
    assert (
        "'accel quantize' turns a network into integers"
        in accel("compile", "onnx", path, "-o", "net.accel", "--strict", code=2).err
    )

from pathlib import Path

from tests.cli.conftest import Shell


def test_a_file_with_the_core(accel: Shell, tmp_path: Path) -> None:
    path = tmp_path / "core.v"
    figures = accel("verilog", "--config", "tiny", "-o", path, "--json").json
    text = path.read_text()
    assert figures == {
        "schema_version": figures["schema_version"],
        "config": "tiny",
        "module": "accel",
        "memories": "inline",
        "slices": False,
        "aresetn": False,
        "lines": len(text.splitlines()),
        "output": str(path),
    }
    assert "module accel(" in text
    assert "accel_memory" not in text
    assert text.startswith("// accel: the core of configuration tiny\n// batch=1 block_in=4")


def test_memories_and_settings(accel: Shell, tmp_path: Path) -> None:
    path = tmp_path / "core.v"
    shown = accel(
        "verilog", "--config", "tiny", "--set", "bus_bits=128", "--memories", "blackbox", "-o", path
    )
    assert "blackbox" in shown.text
    assert "bus_bits=128" in path.read_text()
    assert "module accel_memory " in path.read_text()


def test_bad_input(accel: Shell) -> None:
    accel.refused(
        *("verilog", "-o", "nowhere/core.v"),
        message="'nowhere/core.v' cannot be written: there is no folder 'nowhere'",
    )
    accel.refused(
        *("verilog", "--config", "tinny", "-o", "core.v"),
        message="'tinny' is not a configuration; did you mean 'tiny'?; "
        "the path of a TOML or JSON file works too",
    )

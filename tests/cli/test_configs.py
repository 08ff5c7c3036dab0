import reprlib
from pathlib import Path

import pytest

from accel import Program
from accel.core.config import NAMED, SPECS, from_dict
from accel.core.config_manual import config_manual
from tests.cli.conftest import Shell


def test_all_configurations(accel: Shell) -> None:
    lines = [" ".join(line.split()) for line in accel("configs").text.splitlines()]
    assert [line.split()[0] for line in lines] == ["name", *NAMED]
    assert lines[2] == "gemm8x8 8 8 8 512 16 KiB 64 KiB 64 KiB 128 KiB 128"
    assert lines[3] == "tiny 1 4 8 32 1 KiB 512 B 4 KiB 4 KiB 64"


@pytest.mark.parametrize("name", NAMED)
def test_every_field_is_shown_with_its_meaning(name: str, accel: Shell) -> None:
    title, _, *lines, operations = accel("configs", name).text.splitlines()
    assert title == str(NAMED[name])
    for line, field in zip(lines, NAMED[name].fields, strict=True):
        spec = SPECS[field]
        assert line.split()[:2] == [field, str(getattr(NAMED[name], field))]
        assert line.endswith(f"{spec.kind:<8}  {spec.doc}")
    assert operations.split()[:2] == ["alu_ops", "min,max,add,shr,mul"]


def test_json(accel: Shell) -> None:
    found = accel("configs", "--json").json
    assert {c["name"]: from_dict(c) for c in found["configs"]} == NAMED
    (one,) = accel("configs", "tiny", "--json", "--set", "batch=2").json["configs"]
    assert from_dict(one) == NAMED["tiny"].override({"batch": 2})


@pytest.mark.parametrize("settings", [[], ["--set", "read_latency=100", "--set", "inp_bytes=1KiB"]])
def test_the_printed_configuration_is_a_valid_file(settings: list[str], accel: Shell) -> None:
    printed = accel("configs", "tiny", *settings, "--json")
    Path("mine.json").write_text(printed.out)
    assert accel("configs", "mine.json", "--json").json == printed.json
    size = ["-m", 8, "-n", 8, "-k", 8]
    accel("compile", "gemm", *size, "--config", "tiny", *settings, "-o", "a.accel")
    out = accel("compile", "gemm", *size, "--config", "mine.json", "-o", "b.accel").text
    label = "tiny with inp_bytes=1024, read_latency=100" if settings else "tiny"
    assert f" {label} (1x4x8, 64-bit bus)\n" in out
    again = accel("compile", "gemm", *size, "--config", "mine.json", "-o", "b.accel", "--json").json
    assert again["config"] == accel("run", "b.accel", "--json").json["config"] == label
    assert Program.load("a.accel").config == Program.load("b.accel").config


def test_the_label_lists_changed_fields(accel: Shell) -> None:
    found = accel("configs", "vta", "--set", "read_latency=100").text
    assert found.startswith("vta with read_latency=100 (1x16x16, 64-bit bus)\n")
    (line,) = [one for one in accel("configs", "--set", "serial=1").text.splitlines() if "ecp5 " in one]
    assert line.startswith("ecp5 with serial=1 ")
    Path("mine.toml").write_text("serial = true")
    assert accel("configs", "mine.toml", "--set", "batch=2").text.startswith("mine with batch=2 (2x16x16, ")


def test_the_reference(accel: Shell) -> None:
    assert accel("configs", "--markdown").text == config_manual()
    for further in ("vta", "--json", "--set=batch=2"):
        refused = accel("configs", "--markdown", further, code=2)
        assert "--markdown describes all machines; give nothing else" in refused.err


def test_files_are_shown(accel: Shell) -> None:
    Path("mine.json").write_text('{"bus_bits": 256}')
    assert accel("configs", "mine.json").text.startswith("mine (1x16x16, 256-bit bus)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["vta", "--set", "read_latncy=3"],
            "'read_latncy' is not a configuration field; did you mean 'read_latency'?",
        ),
        (["vta", "--set", "batch"], "--set is given 'batch'; it takes FIELD=VALUE, as read_latency=100"),
        (["vta", "--set", "=1"], "--set is given '=1'; it takes FIELD=VALUE, as read_latency=100"),
        (["vta", "--set", "batch="], "--set is given 'batch='; it takes FIELD=VALUE, as read_latency=100"),
        (
            ["vta", "--set", "batch=2", "--set", "batch=2"],
            "--set is given batch twice, as '2' and as '2'",
        ),
        (["vta", "--set", "batch=512"], "batch is 512 in configuration 'vta'; it must be in 1..256 elements"),
        (
            ["vta", "--set", "inp_bytes=64MiB"],
            "configuration 'vta' needs 170 bits for Gemm; there are 128: "
            "make a scratchpad or the micro-op memory smaller",
        ),
        (["none.json"], "configuration 'none.json' cannot be read: No such file or directory"),
        (["."], "configuration '.' cannot be read: Is a directory"),
        (["list.json"], "configuration 'list.json' holds a list; a JSON object is needed"),
        (["vta.json"], "'LOG_BLOKC' is not a VTA configuration key; did you mean 'LOG_BLOCK'?"),
    ],
)
def test_bad_input(arguments: list[str], message: str, accel: Shell) -> None:
    Path("list.json").write_text("[]")
    Path("vta.json").write_text('{"LOG_BLOKC": 4}')
    accel.refused("configs", *arguments, message=message)


@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 5000, '{"batch": ', "\ud800", "", "{}{}"])
def test_a_file_that_is_not_json(content: str, accel: Shell) -> None:
    Path("bad.json").write_text(content, errors="surrogatepass")
    outcome = accel("configs", "bad.json", code=2)
    assert outcome.out == ""
    assert outcome.err.startswith("accel: configuration 'bad.json' is not JSON: ")
    assert outcome.err.count("\n") == 1


def test_a_number_of_5000_digits_is_refused(accel: Shell) -> None:
    digits = "9" * 5000
    message = f"batch is {reprlib.repr(digits)}; it must be an integer, as 64, 0x40 or 64KiB"
    accel.refused("configs", "tiny", "--set", f"batch={digits}", message=message)


def test_area(accel: Shell) -> None:
    text = accel("configs", "ecp5", "--area").text
    header, row, *rest = text.splitlines()
    assert header.split() == ["name", "LUT", "slots", "flip-flops", "block", "RAM", "multipliers"]
    assert row.split()[0] == "ecp5"
    assert row.split()[-2:] == ["60", "77"]
    assert "held out from the fit its error is" in " ".join(rest)
    found = accel("configs", "ecp5", "--set", "acc_bytes=64KiB", "--area", "--json").json
    (area,) = found["areas"]
    assert area["block_ram"] > 60
    assert area["errors"]["lut_slots"]["median"] < area["errors"]["lut_slots"]["largest"]
    assert "areas" not in accel("configs", "ecp5", "--json").json
    assert "give nothing else" in accel("configs", "--markdown", "--area", code=2).err

"""``accel tune``, and the files that ``accel compile`` takes from it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell

TEMPLATES = Path(__file__).parents[1] / "tuning" / "templates.py"
GEMM = ("gemm", "--config", "vta", "-m", 64, "-n", 64, "-k", 64, "--shift", 7)


def test_a_template_becomes_a_schedule_and_a_program(accel: Shell) -> None:
    found = accel(
        *("tune", f"{TEMPLATES}:product", "--machine", "vta", "--trials", 30, "--explorer", "exhaustive"),
        *("--jobs", 1, "-o", "best.json", "--save-program", "best.accel", "--json"),
    ).json
    assert (found["space_size"], found["valid_points"], found["trials"]) == (24, 20, 20)
    sizes = ("-m", 32, "-n", 32, "-k", 32, "--shift", 7)
    accel("compile", "gemm", "--config", "vta", *sizes, "--schedule", "best.json", "-o", "again.accel")
    for program in ("best.accel", "again.accel"):
        assert accel("run", program, "--json").json["cycles"] == found["cycles"]


def test_an_operator_and_its_records(accel: Shell) -> None:
    found = accel("tune", *GEMM, "--trials", 8, "--records", "r.jsonl", "--json").json
    assert found["cycles"] < found["default_cycles"]
    accel("compile", *GEMM, "--tuned", "r.jsonl", "-o", "tuned.accel")
    assert accel("run", "tuned.accel", "--json").json["cycles"] == found["cycles"]
    text = accel("tune", *GEMM, "--trials", 1, "--records", "r.jsonl").text
    assert "8 trials of earlier searches" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gmm",), "'gmm' is neither FILE.py:TEMPLATE nor an operator; did you mean 'gemm'?"),
        (("missing.py:product",), "template file 'missing.py' cannot be read: no such file"),
        (("bad.py:product",), "template file 'bad.py' fails: ZeroDivisionError: division by zero"),
        (
            (f"{TEMPLATES}:produkt",),
            f"template file {str(TEMPLATES)!r} has no function 'produkt'; did you mean",
        ),
        ((*GEMM, "--explorer", "greedy"), "the explorer is 'greedy'; valid are"),
    ],
)
def test_bad_input(accel: Shell, arguments: tuple[str, ...], message: str) -> None:
    (accel.folder / "bad.py").write_text("1 / 0\n")
    outcome = accel("tune", *arguments, code=2)
    assert outcome.out == ""
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1

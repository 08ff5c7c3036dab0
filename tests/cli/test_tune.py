"""``accel tune``, and the files that ``accel compile`` takes from it."""

from pathlib import Path

import pytest

from accel import load_onnx, machine
from accel.network.digits import MODEL
from accel.run.tuning_records import Record, append_records, record_key
from accel.tuning.measurement import measure_schedule
from accel.tuning.search_space import make_space
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


def test_a_network_takes_records(accel: Shell) -> None:
    """The first plan of the record is another one than the default, and claims to be faster."""
    network = load_onnx(MODEL)
    plain = network.build("vta-int8")
    part = next(one for one in plain.parts if one.layer is not None and one.mapping == "plain")
    assert part.layer is not None
    workload = part.layer.workload()
    space = make_space(workload, machine("vta-int8"), "plain")
    assert space.default_point is not None
    default = space.schedule(space.default_point)
    other = next(
        one
        for point in space.valid_points or ()
        if (one := space.schedule(point)).steps != default.steps
        and measure_schedule(one, plain.config).cycles != measure_schedule(default, plain.config).cycles
    )
    key = record_key(workload.name, [workload.output], plain.config)
    append_records("r.jsonl", [Record(key=key, cycles=1, steps=list(other.steps))])
    for name, options in (("plain", ()), ("tuned", ("--tuned", "r.jsonl"))):
        accel("compile", "onnx", MODEL, "--config", "vta-int8", *options, "-o", f"{name}.accel")
    cycles = [accel("run", f"{name}.accel", "--json").json["cycles"] for name in ("plain", "tuned")]
    assert cycles == [plain.run().cycles, network.build("vta-int8", tuned="r.jsonl").run().cycles]
    assert cycles[0] != cycles[1]


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

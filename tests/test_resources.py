"""``make fpga``: the tables that it writes, from placements that were recorded."""

import json
from pathlib import Path

import pytest

from accel.base.records import as_dict, replace
from accel.core.config import load_config
from accel.hw.export.place_and_route import Design, Hop
from bench import resources
from tests.hw.export.test_place_and_route import recorded

ROOT = Path(__file__).parents[1]
PAGE = f"# Title\n\n{resources.BEGIN}\n{resources.END}\n\nThe end.\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two placements of ``tiny``, which has the key ``key``."""

    def initialize(self: Design, component: object, folder: Path, name: str, **_: object) -> None:
        self._folder = folder / name

    monkeypatch.setattr(Design, "__init__", initialize)
    monkeypatch.setattr(resources, "Core", lambda config: config)
    folder = tmp_path / "tiny"
    folder.mkdir()
    for seed, mhz in ((1, 40.0), (2, 50.0)):
        placement = replace(recorded(), seed=seed, own_seed=seed + 1000 * (seed == 2), mhz=mhz)
        (folder / f"seed-{seed}.json").write_text(json.dumps(as_dict(placement)))
    return tmp_path


def test_tables_are_written_between_the_marks(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = kept / "page.md"
    page.write_text(PAGE)
    arguments = ["tiny", "--seeds", "2", "--folder", str(kept), "-o", str(page)]
    assert resources.main(arguments) == 0
    assert capsys.readouterr() == ("", "")
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("# Title", "The end.")
    assert "| `tiny` | 70 (0%) | 48 (0%) | 0 (0%) | 1 (1%) | 40.0 (40.0 to 50.0) | 2 | 2.6 |" in lines
    assert any(line.startswith("| 0.4 | `a[4]` | `hw/small.py:27`") for line in lines)
    assert (
        "Seeds 1 (40.0 MHz): heap placer, no target; 2 (50.0 MHz): heap placer, no target, "
        "nextpnr's seed 1002."
    ) in lines
    once = page.read_text()
    assert resources.main(arguments) == 0
    assert page.read_text() == once


def test_operations_of_a_file_are_added() -> None:
    """The file is executed, so its operations exist afterwards."""
    file = ROOT / "examples" / "operations" / "absolute_difference.py"
    config = resources.with_operations(load_config("tiny"), [file])
    assert config.label == "tiny with alu_ops=+absdiff"
    assert resources.with_operations(load_config("tiny"), []).label == "tiny"


def test_a_carry_chain_is_one_signal() -> None:
    hops = [
        Hop(
            kind="routing",
            ns=1.0,
            cell="x",
            net=f"unit.flight.memory.0.2_DO_1_LUT4_A_Z_CCU2C_{n}",
            sources=("hw/a.py:1",),
        )
        for n in range(3)
    ]
    other = Hop(kind="routing", ns=1.0, cell="x", net="unit.ready", sources=("hw/b.py:2",))
    assert list(resources.signals([*hops, other, hops[0]])) == [
        (0.0, "unit.flight.memory", ("hw/a.py:1",)),
        (3.0, "unit.ready", ("hw/b.py:2",)),
        (4.0, "unit.flight.memory", ("hw/a.py:1",)),
    ]


def test_a_path_of_signals_without_lines_says_where_it_begins() -> None:
    hops = (
        Hop(kind="clk-to-q", ns=5.0, cell="store.par.memory.0.3"),
        Hop(kind="routing", ns=1.0, cell="store.lanes.sum_LUT4_Z", net="store.par.memory.0.3_DO_1"),
        Hop(kind="setup", ns=0.0, cell="store.lanes.sum_TRELLIS_FF_Q"),
    )
    assert resources.shown("queue.behind.memory.0.53$DPRAM_COMB1") == "queue.behind.memory"
    table = resources.path_table(replace(recorded(), path=hops)).splitlines()
    assert table[2:] == ["| 0.0 | `store.par.memory` |  |", "| 6.0 | `store.lanes.sum` |  |"]
    assert resources.path_table(recorded()).count("`a`") == 0  # begins with a[4], whose line is known


def test_figures_come_as_json(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resources.main(["tiny", "ecp5", "--kept", "--json", "--folder", str(kept)]) == 0
    (only,) = json.loads(capsys.readouterr().out)["configs"]
    assert only["mhz"] == 40.0
    assert only["gops"] == pytest.approx(2 * 32 * 0.040)
    assert [one["seed"] for one in only["placements"]] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tinny"], "did you mean 'tiny'"),
        (["tiny", "-o", "no/page.md"], "'no/page.md' cannot be used: No such file or directory"),
        (["tiny", "-o", "pyproject.toml"], "the page has no '<!-- placed: begin -->'"),
        (["tiny", "-o", "docs/how-to/looking/critical.png"], "the page has no '<!-- placed: begin -->'"),
        (["ecp5", "--kept"], "no placement of ecp5 exists for the current hardware"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], complaint: str, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resources.main([*arguments, "--folder", str(kept)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1


def test_the_page_has_its_marks() -> None:
    page = (ROOT / "docs" / "reference" / "resources.md").read_text(encoding="utf-8")
    assert resources.with_section(page, "") != page

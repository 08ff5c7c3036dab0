import pytest

from accel.core.events import EventKind
from accel.run.result import Result
from tests.programs import gemm_program


@pytest.fixture(scope="module")
def result() -> Result:
    return gemm_program().run()


def test_instructions(result: Result) -> None:
    table = result.instructions_table()
    assert len(table) == len(result.instructions)
    assert f"ResultTable({len(table)} rows: index, unit, instruction" in repr(table)
    rows = list(table.rows())
    assert rows[-1]["instruction"] == "FINISH"
    assert {(row["unit"], row["tensor"]) for row in rows} >= {("load", "A"), ("load", "B"), ("store", "C")}
    assert max(table["retire"]) + 1 == result.cycles
    assert all(row["handed_out"] < row["start"] < row["retire"] for row in rows)
    events = result.events or []
    grants = [one for one in events if one.kind is EventKind.BURST_GRANT and one.unit.label != "fetch"]
    assert sum(table["bursts"]) == len(grants)
    assert sum(table["beats"]) == sum(one.value for one in grants)
    assert sum(count or 0 for count in table["uops"]) == result.uops
    assert "GEMM" in {row["text"].split()[0] for row in rows}


def test_events(result: Result) -> None:
    table = result.events_table()
    assert table is not None
    assert len(table) == len(result.events or [])
    rows = list(table.rows())
    assert rows[0]["unit"] == "fetch"
    assert (rows[0]["event"], rows[0]["instruction"], rows[0]["tensor"]) == ("burst grant", None, None)
    popped = next(row for row in rows if row["event"] == "token pop")
    assert popped["token"] == "load>compute"
    assert popped["beats"] is None
    pushed = next(row for row in rows if row["event"] == "queue push")
    assert pushed["queue"] in {"load", "compute", "store"}
    assert table["cycle"] == sorted(table["cycle"])


def test_without_time_there_are_no_cycles() -> None:
    result = gemm_program().run(backend="functional")
    assert result.events_table() is None
    assert "start" not in result.instructions_table().columns


def test_data_frames(result: Result) -> None:
    pytest.importorskip("pandas")
    frame = result.instructions_table().to_pandas()
    assert list(frame["instruction"])[-1] == "FINISH"
    assert frame["uops"].dtype == "Int64"
    assert frame["uops"].isna().any()
    assert int(frame["retire"].max()) + 1 == result.cycles


def test_arrow(result: Result) -> None:
    pytest.importorskip("pyarrow")
    table = result.events_table()
    assert table is not None
    found = table.to_arrow()
    assert found.num_rows == len(table)
    assert str(found.schema.field("cycle").type) == "int64"
    assert found.column("token").null_count > 0

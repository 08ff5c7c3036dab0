"""The records that come with the package."""

from pathlib import Path

import pytest

import accel
from accel.benchmarks.benchmark_networks import NETWORKS, default_epilogue, layers_of
from accel.compiler.ops.workload import Workload
from accel.core.config import NAMED
from accel.core.timing_rules import TIMING_CONTRACT_VERSION
from accel.run.measured_plans import simulated_cycles
from accel.run.tuning_records import STOCK, STOCK_FILE, Record, load_records, record_key
from tests.thorough import first_of_each

RECORDS = load_records(STOCK).every


def workload_of(record: Record) -> Workload:
    """The layer of a benchmark network that a record is for."""
    config = NAMED[record.key.machine.partition("/")[0]]
    layers = (one for network in NETWORKS for one in layers_of(network, default_epilogue(config)))
    workloads = (layer.workload() for layer in layers)
    return next(one for one in workloads if record_key(one.name, [one.output], config) == record.key)


def test_lines_are_schedules_of_todays_machines() -> None:
    assert RECORDS
    for record in RECORDS:
        assert record.steps
        assert record.key.timing == TIMING_CONTRACT_VERSION
    assert len({record.key.identity for record in RECORDS}) == len(RECORDS)


@pytest.mark.parametrize("record", first_of_each(RECORDS, lambda _: ""), ids=lambda one: one.key.workload)
def test_a_record_saves_half_a_percent(record: Record) -> None:
    workload, machine = workload_of(record), record.key.machine.partition("/")[0]
    default = simulated_cycles(accel.build(workload, machine))
    tuned = simulated_cycles(accel.build(workload, machine, tuned=STOCK))
    assert tuned == record.cycles
    assert tuned <= 0.995 * default


def test_a_file_of_this_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_records(STOCK).path == STOCK_FILE
    Path(STOCK).write_text("")
    assert load_records(STOCK).every == ()

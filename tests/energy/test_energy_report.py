"""Published energies, energies of runs, and rankings."""

import math

import pytest

import accel
from accel.base.errors import AccelError
from accel.base.records import replace
from accel.core.config import NAMED
from accel.core.isa import Finish, Gemm, Load, Memory, Store
from accel.energy import AccessCounts, Energy, count_accesses, energy_of
from accel.energy.energy_table import energy_table
from accel.energy.energy_text import energy_cells, ranking_lines, unit_of
from accel.network.digits import digits_network

TINY = NAMED["tiny"]

# --- the table -------------------------------------------------------------------------------------


def test_every_energy_has_a_source_and_an_order() -> None:
    table = energy_table()
    for one in [*table.operations.values(), *table.sram.values()]:
        assert 0 < one.low <= one.nominal <= one.high
        assert all(source in table.sources for source in one.sources)
    assert table.operations["int8_multiply"].nominal == math.sqrt(0.07 * 0.2)
    assert table.operations["dram"].nominal == 1300


def test_sram_energies_are_published_ones_and_lie_between_them() -> None:
    table = energy_table()
    for capacity, one in table.sram.items():
        found = table.sram_access(capacity)
        assert found.low == pytest.approx(one.low)
        assert found.high == pytest.approx(one.high)
    middle = table.sram_access(16 << 10)
    assert middle.low == pytest.approx(math.sqrt(7.5 * 8.5))
    assert middle.high == pytest.approx(math.sqrt(10 * 20))
    sizes = [2.0**n for n in range(4, 26)]
    for column in ("low", "nominal", "high"):
        energies = [getattr(table.sram_access(size), column) for size in sizes]
        assert energies == sorted(energies)


def test_small_srams_claim_no_less_than_the_smallest_published_one_at_most() -> None:
    found = energy_table().sram_access(2048)
    assert (found.low, found.high) == (7.5 / 2, 10)


# --- energies --------------------------------------------------------------------------------------


def test_an_energy_exceeds_another_for_every_choice_of_the_published_ones() -> None:
    product, total = Energy({"int8_multiply": 1}), Energy({"int32_add": 1})
    assert (product * 3).exceeds(product * 2)  # although 3 * 0.07 < 2 * 0.2
    assert not (product * 2).exceeds(product * 2)
    assert not product.exceeds(total)  # 0.07 < 0.1
    assert (product * 2).exceeds(total)  # 0.14 > 0.1
    assert (product * 2 + total).exceeds(total * 2)
    assert not total.exceeds(product)


def test_components_of_a_product() -> None:
    """On ``tiny`` a micro-op multiplies 1x4 by 4x8, reads 32 bytes of wgt, and writes three copies of acc."""
    found = energy_of(count_accesses([Gemm(uop_end=1), Finish()], TINY)).components
    assert found["mac array"].amounts == {"int8_multiply": 32, "int32_add": 32}
    assert found["wgt"].amounts == {"sram:4096": 4}
    assert found["inp"].amounts == {"sram:256": 2 * 0.5}  # two banks, both are read
    assert found["acc"].amounts == {"sram:4096": 4 + 2 * 4}  # one read, two writes
    assert found["out"].amounts == {"sram:1024": 1}  # bytes of 8 lanes
    assert not found["dram"].amounts["dram"]
    assert "requantization" not in found


def test_dram_counts_whole_beats() -> None:
    load = Load(memory=Memory.INP, y_size=1, x_size=1, x_stride=1)
    store = Store(y_size=1, x_size=1, x_stride=1)
    found = energy_of(count_accesses([load, store, Finish()], TINY))
    assert found.components["dram"].amounts == {"dram": 2}
    assert found.components["dram"].nominal == 2600
    assert found.total.nominal == pytest.approx(sum(one.nominal for one in found.components.values()))


def test_rankings_hold_and_leave_out_what_is_not_certain() -> None:
    counts = AccessCounts(TINY, {"gemm": 100, "alu": 100})
    found = energy_of(counts)
    assert found.rankings == {"mac array": ["alu"]}
    assert ranking_lines(found) == ["mac array > alu"]
    assert energy_of(AccessCounts(TINY)).rankings == {}


def test_units() -> None:
    assert unit_of(0.5) == (1.0, "pJ")
    assert unit_of(2e6) == (1e6, "µJ")
    assert energy_cells(Energy({"dram": 1}), 1e3) == ("0.250", "1.300", "2.600")


# --- runs ------------------------------------------------------------------------------------------


def test_a_run_without_time_has_the_same_energy() -> None:
    program = accel.build(accel.gemm(8, 8, 8, shift=3), "tiny")
    found = [program.run(backend=backend).energy().to_dict() for backend in ("sim", "functional")]
    assert found[0] == found[1]
    assert found[0]["counts"]["macs"] == 8 * 8 * 8


def test_layers_of_a_network_and_the_reads_of_instructions_make_up_the_whole() -> None:
    program = digits_network().build(accel.machine("tiny-int8"))
    result = program.run(record=True)
    found = result.energy()
    layers = sum((one.counts for _, one in found.parts), AccessCounts(found.counts.config))
    rest = {name: count - layers[name] for name, count in found.counts.values.items()}
    fetched = sum(layer.instructions for layer in result.layers) * 16
    assert {name for name, count in rest.items() if count} == {"read_bursts", "read_bytes"}
    assert rest["read_bytes"] >= fetched
    assert [name for name, _ in found.parts] == [one.name for one in result.layers if one.program]
    with pytest.raises(AccelError, match="use record=True"):
        program.run().energy()


def test_a_run_that_an_error_ended_has_no_energy() -> None:
    result = accel.build(accel.gemm(8, 8, 8), "tiny").run()
    stopped = replace(result, error=accel.LimitExceeded("the run takes more than 10 cycles"))
    with pytest.raises(AccelError, match="an error ended the run"):
        stopped.energy()

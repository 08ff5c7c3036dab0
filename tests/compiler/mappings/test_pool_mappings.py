"""Mappings of pooling give the same results, in numpy and on machines."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.random_inputs import random_inputs
from accel.compiler.mappings.mapping import PLAIN, workload_tensors
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.mappings.pool_mappings import find_pool_mapping, pool_mappings
from tests.compiler.running import mapped_and_loaded
from tests.thorough import also

MEAN = accel.Quantized(scale=0.05, input_zero=-9, output_zero=4)
BYTES = accel.Quantized(scale=0.03, input_zero=131, input_dtype="uint8", output_dtype="uint8")
POOLS = {
    "maximum": accel.max_pool2d(1, 12, 11, 9, 3, stride=2, padding=1),
    "maximum of bytes": accel.max_pool2d(3, 7, 8, 9, (2, 3), stride=(1, 2), padding=(0, 1), dtype="uint8"),
    "maximum, dilated": accel.max_pool2d(2, 5, 9, 9, 2, stride=1, dilation=3),
    "mean": accel.avg_pool2d(1, 10, 8, 8, 2),
    "mean with zeros": accel.avg_pool2d(2, 9, 7, 9, 3, stride=2, padding=1, count_padding=True),
    "mean without zeros": accel.avg_pool2d(1, 9, 7, 9, 3, stride=2, padding=1),
    "quantized": accel.avg_pool2d(1, 9, 8, 7, 3, stride=1, padding=1, count_padding=True, quantized=MEAN),
    "global": accel.global_avg_pool2d(1, 40, 5, 5),
    "global, of bytes": accel.global_avg_pool2d(1, 24, 3, 3, quantized=BYTES),
}
NAMES = ("channels=2", "channels=4", "channels=5", "strips=2x1", "strips=1x3", "channels=2+strips=2x2")


def cases() -> Iterator[Any]:
    for kind, workload in POOLS.items():
        for name in NAMES:
            try:
                find_pool_mapping(workload, name)
            except ScheduleError:
                continue
            yield pytest.param(workload, name, id=f"{kind}-{name}")


@pytest.mark.parametrize(("workload", "name"), list(cases()))
def test_results_in_numpy(workload: accel.Workload, name: str) -> None:
    """Pack the inputs, evaluate the mapping's operator, and unpack its result."""
    mapping = find_pool_mapping(workload, name)
    assert mapping.name == name
    inputs = random_inputs(expression_from_data(expression_to_data([workload.output])), 5)
    data, _ = workload_tensors(mapping.workload)
    arranged = {"data": mapping.views["data"].gather(inputs["data"], data.shape)}
    assert mapping.views["out"].is_one_to_one
    found = mapping.views["out"].scatter(evaluate([mapping.workload.output], arranged)["out"])
    np.testing.assert_array_equal(found, evaluate([workload.output], inputs)["out"])
    back = mapping.views["data"].scatter(arranged["data"])
    seen = mapping.views["data"].scatter(np.ones(data.shape, dtype=np.bool_))
    np.testing.assert_array_equal(back[seen], inputs["data"][seen])


def test_every_pooling_has_mappings() -> None:
    """All have groups of channels. Strips need several rows."""
    found = {(str(one.id), one.values[1]) for one in cases()}
    for kind in POOLS:
        names = {name for case, name in found if case.startswith(f"{kind}-")}
        assert "channels=2" in names
        assert ("strips=2x1" in names) == (kind not in ("mean without zeros", "global", "global, of bytes"))


@pytest.mark.parametrize(
    ("kind", "name", "config"),
    [
        ("maximum", "channels=2+strips=2x2", "gemm8x8"),
        ("maximum of bytes", "channels=2+strips=1x3", "gemm8x8-int8"),
        ("mean without zeros", "channels=2", "gemm8x8"),
        ("quantized", "strips=2x1", "gemm8x8-int8"),
        ("global, of bytes", "channels=4", "gemm8x8-int8"),
        ("mean", "strips=2x1", "tiny"),
    ],
)
def test_results_on_a_machine(kind: str, name: str, config: str, tmp_path: Any) -> None:
    mapped_and_loaded(POOLS[kind], config, name, tmp_path / "p.accel")


def test_mappings_fill_the_rows_of_elements() -> None:
    """Pooling becomes nearly eight times as fast; on machines with one row pictures do not change."""
    mean = accel.global_avg_pool2d(1, 512, 7, 7)
    config = accel.machine("gemm8x8").config
    chosen = choose_mapping(mean, config)
    assert chosen.mapping.name == "channels=8"
    best, *others = chosen.compared
    assert best.factor == 1
    plain = next(one for one in others if one.name == PLAIN)
    assert best.predicted_cycles is not None
    assert best.least_cycles <= best.predicted_cycles < plain.least_cycles
    (of_plain,) = choose_mapping(mean, config, mapping=PLAIN).compared
    assert of_plain.predicted_cycles is not None
    assert best.predicted_cycles < of_plain.predicted_cycles / 6
    assert accel.build(mean, "vta").mapping == PLAIN
    few = accel.build(accel.max_pool2d(1, 16, 24, 24, 3, stride=2, padding=1), "gemm8x8")
    assert "strips" in few.mapping
    assert few.run().mismatches == 0
    full = accel.max_pool2d(8, 16, 6, 6, 2)
    assert [one.name for one in pool_mappings(full, accel.machine("gemm8x8").config)] == [PLAIN]


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        *((kind, "gemm8x8-int8") for kind in POOLS),
        ("maximum", "gemm8x8"),
        ("mean without zeros", "gemm8x8"),
        *(also(kind, "gemm8x8") for kind in ("maximum, dilated", "mean", "mean with zeros", "global")),
    ],
)
def test_no_pooling_is_faster_than_its_bound(kind: str, config: str) -> None:
    for mapping in pool_mappings(POOLS[kind], accel.machine(config).config):
        compared = choose_mapping(POOLS[kind], accel.machine(config).config, mapping=mapping.name).compared[0]
        program = accel.build(POOLS[kind], config, mapping=mapping.name)
        assert 0 < compared.least_cycles <= (program.run(check=False).cycles or 0)


@pytest.mark.parametrize(
    ("kind", "name", "why"),
    [
        ("maximum", "windows", "joins channels"),
        ("maximum", "channels=0", "joins channels"),
        ("maximum", "channels=5", "would be empty"),
        ("global", "strips=2x1", "strips would be empty"),
        ("mean without zeros", "strips=2x1", "padding that does not count"),
        ("mean", "", "joins channels"),
    ],
)
def test_impossible_mappings(kind: str, name: str, why: str) -> None:
    workload = POOLS[kind] if name != "channels=5" else accel.max_pool2d(1, 6, 4, 4, 2)
    with pytest.raises(ScheduleError, match=why):
        accel.build(workload, "gemm8x8", mapping=name)

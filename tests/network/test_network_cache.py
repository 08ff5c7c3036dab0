"""Compiling again: nothing is planned, lowered or emitted twice, and the result is the same to the byte."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.base.result_cache import VARIABLE, ResultCache
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.ops.workload import gemm
from accel.compiler.plans import plan_search, planner
from accel.compiler.target.machine import machine
from accel.network import fusion_choice, placement
from accel.network.digits import digits_network
from accel.network.network_cache import build_or_read
from accel.network.network_file import network_bytes

VTA = machine("vta-int8")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResultCache]:
    """An empty cache, also in memory."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    planner.known_plans().clear()
    yield ResultCache(tmp_path / "cache")
    planner.known_plans().clear()


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the expensive steps run."""
    found: Counter[str] = Counter()
    for module, name in (
        (plan_search.PlanSpace, "predict"),
        (fusion_choice, "lower"),
        (placement, "compile_mapped"),
    ):
        original = getattr(module, name)

        def counted(
            *args: object, _name: str = name, _original: object = original, **kwargs: object
        ) -> object:
            found[_name] += 1
            return _original(*args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(module, name, counted)
    return found


def test_compiling_again_is_reading(cache: ResultCache, counts: Counter[str]) -> None:
    first = build_or_read(digits_network(), VTA)
    assert counts["predict"] > 0
    assert counts["lower"] > 0
    assert counts["compile_mapped"] > 0
    counts.clear()
    planner.known_plans().clear()
    again = build_or_read(digits_network(), VTA)
    assert counts == Counter()
    assert network_bytes(again) == network_bytes(first)
    assert again.compile_seconds is not None


def test_plans_are_read_where_only_the_network_has_changed(cache: ResultCache, counts: Counter[str]) -> None:
    first = digits_network().build(VTA)
    assert counts["predict"] > 0
    counts.clear()
    planner.known_plans().clear()
    again = digits_network().build(VTA)
    assert counts["predict"] == 0
    assert network_bytes(again) == network_bytes(first)


def test_candidates_are_the_same_to_the_last_bit(cache: ResultCache) -> None:
    workload = gemm(200, 72, 136, shift=7)
    found = find_candidates(workload, machine("vta").config)
    planner.known_plans().clear()
    read = find_candidates(workload, machine("vta").config)
    assert read == found
    assert [repr(one) for one in read] == [repr(one) for one in found]
    assert {one.kind for one in cache.entries()} == {"plans"}


def test_options_and_machines_have_their_own_entries(cache: ResultCache) -> None:
    network = digits_network()
    build_or_read(network, VTA)
    build_or_read(network, VTA, fusion=False)
    build_or_read(network, machine("vta-int8", read_latency=99))
    build_or_read(network, VTA, fusion=True)
    kinds = Counter(one.kind for one in cache.entries())
    assert kinds["network"] == 3, "fusion=True is the default"


def test_a_damaged_entry_is_compiled_again(cache: ResultCache) -> None:
    first = build_or_read(digits_network(), VTA)
    (entry,) = (one for one in cache.entries() if one.kind == "network")
    key = entry.path.name.partition("-")[2]
    cache.write("network", key, b"whole, but no network")
    assert network_bytes(build_or_read(digits_network(), VTA)) == network_bytes(first)

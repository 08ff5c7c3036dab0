"""Simulators and models as fixtures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from accel.core.config import NAMED, Config
from accel.hw.core import Core
from accel.hw.export.bordered import Bordered
from tests.cocotb.flipped import Flipped
from tests.cocotb.simulators import Model, model

_WINDOW = {"mem_base": 0xA5_0040_0000, "mem_size": 1 << 20}
CONFIGS = {
    "tiny": replace(NAMED["tiny"], **_WINDOW),
    "wide": replace(
        NAMED["tiny"],
        **_WINDOW,
        bus_bits=256,
        outstanding=2,
        max_burst_beats=4,
        fetch_buffer=8,
        fetch_chunk=4,
        load_queue=2,
        compute_queue=2,
        store_queue=2,
        loads_in_flight=2,
        stores_in_flight=2,
        tree_stages=0,
        token_bits=3,
    ),
}
"""Bus as narrow as it gets with long bursts; a wide one with short bursts and little of everything else,
behind register slices and a reset that is active low."""


def bordered(config: Config) -> Bordered:
    """A core with all that it may have at its border."""
    return Bordered(Core(config), slices=True, aresetn=True)


@pytest.fixture
def cache(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where models and objects are kept."""
    kept = pytestconfig.pluginmanager.has_plugin("cacheprovider")
    return Path(pytestconfig.cache.mkdir("cocotb")) if kept else tmp_path_factory.getbasetemp()  # type: ignore[union-attr]


@pytest.fixture
def built(cache: Path) -> Callable[[str, str], Model]:
    """For a simulator the core by its name in :data:`CONFIGS`, or ``flipped-`` and that name."""

    def build(simulator: str, name: str) -> Model:
        kind, _, config = name.rpartition("-")
        design = Flipped if kind == "flipped" else bordered if config == "wide" else Core
        return model(simulator, name, CONFIGS[config], cache, design)

    return build

from collections.abc import Callable
from pathlib import Path

import pytest

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.hw.core import Core
from accel.hw.export.chip_border import Bordered
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
"""``tiny`` has the narrowest bus and long bursts. ``wide`` has a wide bus, short bursts, small queues,
register slices and an active-low reset."""


def bordered(config: Config) -> Bordered:
    """A core with all options of its ports."""
    return Bordered(Core(config), slices=True, aresetn=True)


@pytest.fixture
def cache(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of compiled models and objects."""
    kept = pytestconfig.pluginmanager.has_plugin("cacheprovider")
    return Path(pytestconfig.cache.mkdir("cocotb")) if kept else tmp_path_factory.getbasetemp()  # type: ignore[union-attr]


@pytest.fixture
def built(cache: Path) -> Callable[[str, str], Model]:
    """Return a function that builds a core's model for a simulator. The core's name is in :data:`CONFIGS`, or
    such a name after ``flipped-``."""

    def build(simulator: str, name: str) -> Model:
        kind, _, config = name.rpartition("-")
        design = Flipped if kind == "flipped" else bordered if config == "wide" else Core
        return model(simulator, name, CONFIGS[config], cache, design)

    return build

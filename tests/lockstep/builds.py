"""The machines of lockstep tests: few builds, which together have every value of every
parameter."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.open_engine import open_engine
from tests.own_operations import MACHINE
from tests.strategies import RTL_VALUES
from tests.thorough import grouped

TINY, SECOND, THIRD = (NAMED[name].hardware for name in ("tiny", "tiny-int8", "tiny-npu"))


def _build(base: Config = TINY, /, **values: Any) -> Config:
    return replace(base, **values)


THOROUGH = {
    "1x1x1",
    "1x16x2",
    "one at a time",
    "two elements",
    "more inp than acc",
    "4x2x8",
    "int8, short queues",
    "npu, 4x4x4",
    "npu, no stages",
    "int8, 1x32x4",
}
"""Builds for ``--thorough`` only. Compiling one takes as long as all its programs, and other builds have most
of its parameter values."""
_LARGE = 256
"""Models with at least as many multipliers are compiled with optimization. It takes 4 s more for ``vta``, and
saves 0.3 s for each of its vectors."""
BUILDS: dict[str, Config] = {
    "tiny": TINY,
    "own operations": MACHINE.hardware,
    "short queues": _build(
        dispatch_stages=1,
        compute_queue=2,
        load_queue=1,
        store_queue=1,
        fetch_buffer=1,
        fetch_chunk=1,
        bus_bits=128,
        token_bits=1,
        mul_slots=2,
    ),
    "2x2x4": _build(
        batch=2,
        block_in=2,
        block_out=4,
        bus_bits=256,
        dispatch_stages=3,
        compute_queue=1,
        load_queue=2,
        store_queue=3,
        fetch_buffer=2,
        fetch_chunk=2,
        outstanding=2,
        mul_slots=5,
        tree_stages=1,
    ),
    "1x1x1": _build(
        block_in=1,
        block_out=1,
        uop_bytes=256,
        inp_bytes=16,
        wgt_bytes=16,
        acc_bytes=64,
        max_burst_beats=8,
        load_queue=3,
        compute_queue=4,
        fetch_buffer=4,
        fetch_chunk=4,
        loads_in_flight=2,
        stores_in_flight=3,
        tree_stages=0,
    ),
    "1x16x2": _build(
        block_in=16,
        block_out=2,
        dispatch_stages=2,
        inp_bytes=128,
        wgt_bytes=256,
        acc_bytes=128,
        bus_bits=256,
        outstanding=3,
        max_burst_beats=64,
        load_queue=4,
        store_queue=2,
        loads_in_flight=3,
        stores_in_flight=2,
        tree_stages=3,
    ),
    "one at a time": _build(
        inp_bytes=128,
        wgt_bytes=64,
        outstanding=1,
        loads_in_flight=1,
        stores_in_flight=1,
        max_burst_beats=2,
        token_bits=2,
        tree_stages=0,
    ),
    "two elements": _build(
        uop_bytes=8,
        inp_bytes=8,
        wgt_bytes=64,
        acc_bytes=64,
        bus_bits=128,
        outstanding=2,
        load_queue=2,
        compute_queue=2,
        fetch_chunk=1,
        loads_in_flight=2,
        token_bits=1,
    ),
    "more inp than acc": _build(
        uop_bytes=512,
        inp_bytes=8192,
        acc_bytes=64,
        store_queue=1,
        fetch_buffer=4,
        fetch_chunk=4,
        outstanding=4,
        stores_in_flight=2,
        mul_slots=4,
        tree_stages=3,
    ),
    "4x2x8": _build(
        batch=4,
        block_in=2,
        block_out=8,
        bus_bits=512,
        acc_bytes=8192,
        max_burst_beats=4,
        fetch_buffer=4,
        fetch_chunk=2,
        outstanding=4,
        compute_queue=3,
        store_queue=4,
        loads_in_flight=4,
        stores_in_flight=4,
        tree_stages=2,
    ),
    "int8": SECOND,
    "int8, short queues": _build(
        SECOND,
        dispatch_stages=2,
        post_stages=0,
        post_lanes=2,
        inp_banks=8,
        par_bytes=64,
        res_bytes=16,
        bus_bits=256,
        compute_queue=1,
        load_queue=2,
        store_queue=2,
        fetch_buffer=2,
        fetch_chunk=1,
        loads_in_flight=1,
        token_bits=2,
        mul_slots=4,
        tree_stages=0,
    ),
    "npu, 4x4x4": _build(
        THIRD,
        dispatch_stages=3,
        post_stages=5,
        post_lanes=0,
        inp_banks=2,
        batch=4,
        inp_bytes=128,
        wgt_bytes=128,
        acc_bytes=512,
        load_queue=3,
        outstanding=2,
        max_burst_beats=4,
        loads_in_flight=3,
        tab_bytes=512,
        stores_in_flight=1,
        mul_slots=3,
        tree_stages=2,
    ),
    "int8, 1x32x4": _build(
        SECOND,
        block_in=32,
        inp_banks=1,
        inp_bytes=1024,
        wgt_bytes=4096,
        load_queue=4,
        loads_in_flight=4,
        mul_slots=4,
        tree_stages=3,
        post_stages=1,
        post_lanes=1,
        stores_in_flight=3,
    ),
    "npu": THIRD,
    "npu, no stages": _build(THIRD, loads_in_flight=3, post_stages=0, post_lanes=4, bus_bits=128),
}
"""Builds, named after their special values. Those with ``post=1`` come last."""


def group(config: Config) -> str:
    """The pytest-xdist group of a machine's tests, so that one process runs them and builds the model once.

    All builds of one geometry share a group, since a directed program runs on each of them.
    """
    return f"build {config.batch}x{config.block_in}x{config.block_out}, post={config.post}"


def each(names: Iterable[str] = BUILDS) -> list[Any]:
    """Parameters of a test that runs on several builds."""
    return [grouped(group(BUILDS[name]), name, thorough=name in THOROUGH) for name in names]


def missing_values() -> dict[str, set[int]]:
    return {
        name: set(values) - {getattr(build, name) for build in BUILDS.values()}
        for name, values in RTL_VALUES.items()
    }


@cache
def hardware(build: Config) -> Engine:
    """The machine of a build, opened once per process."""
    return opened(build)


def opened(config: Config) -> Engine:
    """Open another machine of this build, which the caller closes; optimize it for long programs."""
    large = config.batch * config.block_in * config.block_out >= _LARGE
    return open_engine(config.hardware, optimize=1 if large else None)


def built(config: Config) -> Engine:
    """Return the machine for a configuration, after a reset."""
    engine = hardware(config.hardware)
    engine.reset()
    return engine


def same_geometry(config: Config) -> list[str]:
    """The builds on which a program of this machine runs."""
    return [key for key, build in BUILDS.items() if build.hardware.geometry == config.hardware.geometry]

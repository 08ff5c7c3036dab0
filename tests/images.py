"""Random program images, with data, regions, presets and expectations that do not mean anything."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import encode
from accel.core.scratchpad_specs import scratchpads_of
from accel.image.image import Image, Region
from accel.image.program_source import Options, Source
from accel.image.test_scenario import Contents, Expected, Start
from tests.strategies import any_instructions


def contents(config: Config) -> st.SearchStrategy[Contents]:
    def at(draw: Any) -> Contents:
        name = draw(st.sampled_from(list(scratchpads_of(config))))
        pad = scratchpads_of(config)[name]
        depth, size, dtype = pad.depth(config), pad.held_bytes(config), np.dtype(pad.held_dtype(config))
        element = draw(st.integers(0, depth - 1))
        count = draw(st.integers(1, min(3, depth - element)))
        values = np.frombuffer(draw(st.binary(min_size=count * size, max_size=count * size)), dtype)
        unused = 8 * dtype.itemsize - pad.lane_bits(config)
        return Contents(scratchpad=name, element=element, data=(values << unused >> unused).tobytes())

    return st.composite(at)()


def sources() -> st.SearchStrategy[Source]:
    values = st.dictionaries(
        st.text(max_size=3), st.text(max_size=3) | st.floats(0, 1) | st.lists(st.integers(), max_size=2)
    )
    options = st.builds(
        Options, workload=st.none() | st.text(max_size=3), parameters=values, fold=st.none() | st.booleans()
    )
    return st.builds(
        Source,
        expression=st.none() | values,
        schedule=st.none() | st.lists(values, max_size=2),
        options=st.none() | options,
    )


@st.composite
def images(draw: Any) -> Image:
    """Programs with data, regions and expectations that do not mean anything."""
    config = draw(st.sampled_from(list(NAMED.values()))).override(
        {"mem_base": 4096 * draw(st.integers(0, 3)), "read_latency": draw(st.integers(2, 70))}
    )
    config = replace(config, name=draw(st.sampled_from([config.name, 'odd "name" # \\', "x"])))
    body = draw(st.lists(any_instructions(config), max_size=3))
    bytes_ = st.binary(min_size=1, max_size=70) | st.integers(1, 200).map(bytes)
    segments = [
        (4096 * (n + 1) + 7 * n, content) for n, content in enumerate(draw(st.lists(bytes_, max_size=3)))
    ]
    tokens = st.tuples(*[st.integers(0, 255)] * 4)
    expected = Expected(
        cause=draw(st.sampled_from(Cause)),
        instruction=draw(st.none() | st.just(0)),
        memory=tuple(draw(st.lists(st.tuples(st.integers(0, 1 << 20), bytes_), max_size=2))),
        contents=tuple(draw(st.lists(contents(config), max_size=2))),
        tokens=draw(st.none() | tokens),
        racy=draw(st.booleans()),
    )
    if expected.cause is Cause.NONE:
        expected = replace(expected, instruction=None)
    return Image(
        config=config,
        code=encode(body, config),
        code_offset=1 << 20,
        segments=tuple(draw(st.permutations(segments))),
        regions=tuple(Region(name=f"r{n}", offset=n * 64, nbytes=n) for n in range(draw(st.integers(0, 3)))),
        start=Start(
            contents=tuple(draw(st.lists(contents(config), max_size=2))),
            tokens=draw(tokens),
            max_cycles=draw(st.none() | st.integers(1, 1 << 40)),
            max_uops=draw(st.none() | st.integers(1, 1 << 40)),
        ),
        expected=draw(st.none() | st.just(expected)),
        source=draw(st.none() | sources()),
    )

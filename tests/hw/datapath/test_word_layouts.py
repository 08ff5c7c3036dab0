"""Products of a transfer's fields, up to the fields' highest values, and the widths that
follow from them."""

from random import Random
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import NAMED, SPECS
from accel.core.isa import PAD_BITS, SIZE_BITS, Load, Memory, Unit, encode
from accel.hw.datapath.word_layouts import (
    BEATS_BITS,
    LANE_BITS,
    UNIT_BITS,
    BoxLayout,
    add_up,
    kind_bits,
    multiply_out,
    view,
)
from tests.hw.bench import run

CONFIG = NAMED["vta"]
SIZE, PAD = (1 << SIZE_BITS) - 1, (1 << PAD_BITS) - 1


class Products(wiring.Component):
    """Hardware that computes only these products."""

    def __init__(self) -> None:
        super().__init__({"word": In(128), "box": Out(BoxLayout())})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        load = view(Load, CONFIG, self.word)
        m.d.comb += self.box.eq(add_up(m, load, multiply_out(m, load)))
        return m


def products(load: Load) -> dict[str, int]:
    """Compute the products directly, for boxes that are too large to enumerate."""
    rows = bool(load.y_size)
    extent = (load.y_size - 1) * load.x_stride + load.x_size if rows else 0
    head = load.width * load.y_pad_0 + load.x_pad_0
    tail = load.width * load.y_pad_1 + load.x_pad_1
    return {
        "elements": load.width * load.height,
        "end": load.sram_base + load.width * load.height,
        "extent": extent,
        "stop": load.dram_base + extent,
        "body": load.width * load.y_size,
        "head": head if rows else load.width * load.height,
        "tail": tail if rows else 0,
    }


def test_products_up_to_the_ends_of_the_fields() -> None:
    dut = Products()

    async def bench(context: Any) -> None:
        rng = Random(5)
        for number in range(400):
            end = rng.random() < 0.5 if number else True
            values = {
                name: rng.choice([0, 1, 2, high, high]) if end and number else high
                for name, high in (
                    *((name, SIZE) for name in ("y_size", "x_size", "x_stride")),
                    *((name, PAD) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")),
                )
            }
            if not end:
                values = {name: rng.randint(0, high) for name, high in values.items()}
            load = Load(memory=Memory.ACC, **values)  # type: ignore[arg-type]
            context.set(dut.word, int.from_bytes(encode([load], CONFIG), "little"))
            await context.delay(1e-9)
            found = context.get(dut.box)
            assert {name: getattr(found, name) for name in products(load)} == products(load), load

    run(dut, bench)


def test_widths_hold_what_they_count() -> None:
    """Each width is also minimal."""
    most_beats, bus_bytes = SPECS["max_burst_beats"].high, SPECS["bus_bits"].high // 8
    for bits, highest in (
        (BEATS_BITS, most_beats),
        (LANE_BITS, bus_bytes - 1),
        (UNIT_BITS, max(Unit)),
    ):
        assert 1 << (bits - 1) <= highest < 1 << bits


def test_a_kind_has_as_many_bits_as_the_memories_of_a_unit_need() -> None:
    """The compute unit loads into three memories. The store unit writes five where there is STORE.MUL."""
    second = NAMED["tiny-int8"]
    assert kind_bits(NAMED["tiny"]) == kind_bits(second) == 2
    assert kind_bits(second.override({"tab_bytes": 512})) == 2
    assert kind_bits(second.override({"res_mul": 1})) == 3

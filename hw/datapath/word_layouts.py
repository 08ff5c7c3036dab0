"""Views of instruction and micro-op words, and their sizes."""

from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal, Value, ValueLike, signed, unsigned
from amaranth.lib import data

from accel.core.config import SPECS, Config
from accel.core.fault_causes import CAUSE_BITS
from accel.core.isa import PAD_BITS, SIZE_BITS, TRANSFERS, MicroOp, Unit, class_slots, routes_of
from accel.core.isa.instruction_fields import INSTRUCTION_BITS
from accel.core.scratchpad_specs import scratchpads_of

INDEX_BITS = 32
"""Width of an instruction's index in the program."""
UNIT_BITS = max(Unit).bit_length()
BEATS_BITS = SPECS["max_burst_beats"].high.bit_length()
LANE_BITS = (SPECS["bus_bits"].high // 8 - 1).bit_length()
"""Width of an element's position in a beat."""
GAP_BITS = PAD_BITS + 1
"""Width of the sum of both sides' pads."""
_PADDED_BITS = SIZE_BITS + 2
"""Width of a size plus both sides' pads: two additions."""
RUN_BITS = _PADDED_BITS + PAD_BITS
"""Width of the number of pad words before or after the data: at most twice a pad field's rows."""
SPAN_BITS = 2 * _PADDED_BITS
"""Width of the elements of a padded box, and of the DRAM elements that a transfer spans."""


def word_layout(cls: type[Any], config: Config) -> data.FlexibleLayout:
    bits = cls.BITS
    fields = {
        slot.name: data.Field(signed(slot.width) if slot.spec.signed else unsigned(slot.width), slot.offset)
        for slot in class_slots(cls, config)
    }
    return data.FlexibleLayout(bits, fields)


def view(cls: type[Any], config: Config, word: ValueLike) -> Any:
    return data.View(word_layout(cls, config), word)


def uop_view(config: Config, word: ValueLike) -> Any:
    return view(MicroOp, config, word)


def kind_bits(config: Config) -> int:
    memories = (
        sum(route.unit is unit for route in routes_of(cls, config).values())
        for cls in TRANSFERS
        for unit in Unit
    )
    return (max(memories) - 1).bit_length()


def sram_bits(config: Config) -> int:
    """Return the width of a scratchpad index, including the end index."""
    return 1 + max(pad.address_bits(config) for pad in scratchpads_of(config).values())


class ProductsLayout(data.StructLayout):
    """Products of a transfer's sizes, in scratchpad elements except for ``rows``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "body": SPAN_BITS,  # the rows that hold data, with their pads
                "around": SPAN_BITS,  # the rows above and below
                "above": RUN_BITS,
                "below": RUN_BITS,
                "rows": SPAN_BITS,  # DRAM elements from the first row to the last
            }
        )


class BoxLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__(
            {
                "elements": SPAN_BITS,  # scratchpad elements of the padded box
                "end": SPAN_BITS,  # end index in the scratchpad
                "extent": SPAN_BITS,  # DRAM elements from the first one to the end
                "stop": SPAN_BITS,  # end index in DRAM
                "body": SPAN_BITS,  # as in ``ProductsLayout``
                "head": RUN_BITS,  # pad words before the first data element, or all without data
                "tail": RUN_BITS,  # pad words after the last data element
            }
        )


class PlacedLayout(data.StructLayout):
    """A :class:`BoxLayout` in queues, as wide as scratchpad indices. Larger values, of faults and of LOADs
    that RES cannot hold, are cut off, except that ``elements`` saturates. It is 0 if nothing moves."""

    def __init__(self, config: Config) -> None:
        names = ("elements", "end", "body", "head", "tail")
        super().__init__({name: sram_bits(config) for name in names})


class MovesLayout(data.StructLayout):
    """The moves of a LOAD or STORE: its memory's ``kind``, and whether it has ``data``, ``pads``, and any
    scratchpad elements (``some``). They are 0 for other instructions."""

    def __init__(self, config: Config) -> None:
        super().__init__({"kind": kind_bits(config), "data": 1, "pads": 1, "some": 1})


class EntryLayout(data.StructLayout):
    """An entry of an instruction queue. ``cause`` is the instruction's own fault."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "word": INSTRUCTION_BITS,
                "index": INDEX_BITS,
                "box": PlacedLayout(config),
                "moves": MovesLayout(config),
                "cause": CAUSE_BITS,
            }
        )


class SizesLayout(data.StructLayout):
    """Factors of a LOAD or STORE: elements of a padded row, rows of pads, and rows after the first."""

    def __init__(self) -> None:
        super().__init__({"width": _PADDED_BITS, "pads_y": GAP_BITS, "rows": SIZE_BITS})


def measure(m: Module, transfer: Any, *, padded: Value | None = None) -> data.View:
    sizes = Signal(SizesLayout())
    top, bottom, left, right = _pads(transfer, padded)
    m.d.comb += [
        sizes.width.eq(left + transfer.x_size + right),
        sizes.pads_y.eq(top + bottom),
        sizes.rows.eq(transfer.y_size - 1),
    ]
    return sizes


def multiply_out(
    m: Module, transfer: Any, *, padded: Value | None = None, sizes: data.View | None = None
) -> data.View:
    """Return the products of a LOAD's or STORE's sizes, combinationally. ``padded``: whether the pad fields
    mean pads. None: always."""
    products = Signal(ProductsLayout())
    if sizes is None:
        sizes = measure(m, transfer, padded=padded)
    top, bottom, _, _ = _pads(transfer, padded)
    m.d.comb += [
        products.body.eq(sizes.width * transfer.y_size),
        products.around.eq(sizes.width * sizes.pads_y),
        products.above.eq(sizes.width * top),
        products.below.eq(sizes.width * bottom),
        products.rows.eq(sizes.rows * transfer.x_stride),
    ]
    return products


def add_up(m: Module, transfer: Any, products: data.View, *, padded: Value | None = None) -> data.View:
    """Return the box that follows from the products."""
    box = Signal(BoxLayout())
    _, _, left, right = _pads(transfer, padded)
    m.d.comb += [
        box.body.eq(products.body),
        box.elements.eq(products.body + products.around),
        box.end.eq(transfer.sram_base + products.body + products.around),
        box.extent.eq(products.rows + transfer.x_size),
        box.stop.eq(transfer.dram_base + products.rows + transfer.x_size),
        box.head.eq(products.above + left),
        box.tail.eq(products.below + right),
    ]
    with m.If(transfer.y_size == 0):
        m.d.comb += [
            box.extent.eq(0),
            box.stop.eq(transfer.dram_base),
            box.head.eq(products.around),
            box.tail.eq(0),
        ]
    return box


def place(m: Module, transfer: Any, box: data.View, config: Config) -> data.View:
    placed = Signal(PlacedLayout(config))
    m.d.comb += [getattr(placed, name).eq(getattr(box, name)) for name, _ in PlacedLayout(config)]
    with m.If(box.elements[sram_bits(config) :].any()):
        m.d.comb += placed.elements.eq(~0)
    with m.If(transfer.x_size == 0):
        m.d.comb += placed.elements.eq(0)
    return placed


def _pads(transfer: Any, padded: Value | None) -> tuple[Value, ...]:
    pads = (transfer.y_pad_0, transfer.y_pad_1, transfer.x_pad_0, transfer.x_pad_1)
    return tuple(pad if padded is None else Mux(padded, pad, 0) for pad in pads)


def minimum(*values: ValueLike) -> ValueLike:
    """Return the smallest value."""
    first, *rest = values
    for value in rest:
        first = Mux(value < first, value, first)
    return first


def log2(value: int) -> int:
    assert value & (value - 1) == 0
    return value.bit_length() - 1


def bits_for_depth(depth: int) -> Shape:
    return unsigned(max(1, (depth - 1).bit_length()))

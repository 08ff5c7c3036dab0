"""Instructions and micro-ops as hardware sees them: views over their words, and what follows from them.

Places and widths of fields come from the one declaration in :mod:`accel.core.isa`.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal, Value, ValueLike, signed, unsigned
from amaranth.lib import data

from accel.core.config import SPECS, Config
from accel.core.isa import PAD_BITS, SIZE_BITS, TRANSFERS, MicroOp, Unit, class_slots
from accel.core.isa.fields import INSTRUCTION_BITS

INDEX_BITS = 32
"""Width of an instruction's place in the program."""
UNIT_BITS = max(Unit).bit_length()
BEATS_BITS = SPECS["max_burst_beats"].high.bit_length()
"""Holds the beats of any burst."""
LANE_BITS = (SPECS["bus_bits"].high // 8 - 1).bit_length()
"""Of an element's place in a beat, however short it is."""
KIND_BITS = (
    max(sum(route.unit is unit for route in cls.ROUTES.values()) for cls in TRANSFERS for unit in Unit) - 1
).bit_length()
"""Of a transfer's kind: the position of its memory in the list of those that its unit knows."""
GAP_BITS = PAD_BITS + 1
"""Holds the pads of both sides."""
_PADDED_BITS = SIZE_BITS + 2
"""Holds a size with the pads of both sides: two additions."""
RUN_BITS = _PADDED_BITS + PAD_BITS
"""Holds the pad words before or behind the data: at most twice the rows that a pad field counts."""
SPAN_BITS = 2 * _PADDED_BITS
"""Holds the elements of any padded box, and the DRAM elements that a transfer spans."""


def word_layout(cls: type[Any], config: Config) -> data.FlexibleLayout:
    """Layout of an instruction class, or of micro-ops, in its word."""
    bits = cls.BITS
    fields = {
        slot.name: data.Field(signed(slot.width) if slot.spec.signed else unsigned(slot.width), slot.offset)
        for slot in class_slots(cls, config)
    }
    return data.FlexibleLayout(bits, fields)


def view(cls: type[Any], config: Config, word: ValueLike) -> Any:
    """``word`` seen as an instruction of class ``cls``."""
    return data.View(word_layout(cls, config), word)


def uop_view(config: Config, word: ValueLike) -> Any:
    """``word`` seen as a micro-op."""
    return view(MicroOp, config, word)


class BoxLayout(data.StructLayout):
    """What is multiplied out of a LOAD or STORE while it is handed out, before it enters a queue."""

    def __init__(self) -> None:
        super().__init__(
            {
                "elements": SPAN_BITS,  # scratchpad elements of the padded box
                "extent": SPAN_BITS,  # DRAM elements from the first to behind the last
                "body": SPAN_BITS,  # scratchpad elements of the rows that hold data, with their pads
                "head": RUN_BITS,  # pad words before the first data element; all of them if there is none
                "tail": RUN_BITS,  # pad words behind the last data element
            }
        )


class EntryLayout(data.StructLayout):
    """An entry of an instruction queue."""

    def __init__(self) -> None:
        super().__init__({"word": INSTRUCTION_BITS, "index": INDEX_BITS, "box": BoxLayout()})


def multiply_out(m: Module, transfer: Any, *, padded: Value | None = None) -> data.View:
    """The products that starting a LOAD or STORE needs; combinational.

    Args:
        m: where the logic goes.
        transfer: the LOAD or STORE.
        padded: whether the bits of pads mean pads; None if they do in any case.
    """
    box = Signal(BoxLayout())
    body = Signal(SPAN_BITS)
    width = Signal(_PADDED_BITS)
    pads_y = Signal(GAP_BITS)
    top, bottom, left, right = (
        pad if padded is None else Mux(padded, pad, 0)
        for pad in (transfer.y_pad_0, transfer.y_pad_1, transfer.x_pad_0, transfer.x_pad_1)
    )
    m.d.comb += [
        width.eq(left + transfer.x_size + right),
        pads_y.eq(top + bottom),
        body.eq(width * transfer.y_size),
        box.body.eq(body),
        box.elements.eq(body + width * pads_y),
        box.extent.eq((transfer.y_size - 1) * transfer.x_stride + transfer.x_size),
    ]
    with m.If(transfer.y_size == 0):
        m.d.comb += [box.extent.eq(0), box.head.eq(width * pads_y)]
    with m.Else():
        m.d.comb += [
            box.head.eq(width * top + left),
            box.tail.eq(width * bottom + right),
        ]
    return box


def minimum(*values: ValueLike) -> ValueLike:
    """The smallest of unsigned values."""
    first, *rest = values
    for value in rest:
        first = Mux(value < first, value, first)
    return first


def log2(value: int) -> int:
    """Of a power of two."""
    assert value & (value - 1) == 0
    return value.bit_length() - 1


def bits_for_depth(depth: int) -> Shape:
    """Shape of an address."""
    return unsigned(max(1, (depth - 1).bit_length()))

"""Instructions and micro-ops as hardware sees them: views over their words, and what follows from them.

Places and widths of fields come from the one declaration in :mod:`accel.core.isa`.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal, Value, ValueLike, signed, unsigned
from amaranth.lib import data

from accel.core.config import SPECS, Config
from accel.core.faults import CAUSE_BITS
from accel.core.isa import PAD_BITS, SIZE_BITS, TRANSFERS, MicroOp, Unit, class_slots
from accel.core.isa.fields import INSTRUCTION_BITS
from accel.core.memories import scratchpads_of

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


def sram_bits(config: Config) -> int:
    """Bits that hold any scratchpad element's index, and the one behind the last."""
    return 1 + max(pad.address_bits(config) for pad in scratchpads_of(config).values())


class ProductsLayout(data.StructLayout):
    """What is multiplied out of a LOAD or STORE; all but the last in scratchpad elements."""

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
    """What follows from the products of a LOAD or STORE."""

    def __init__(self) -> None:
        super().__init__(
            {
                "elements": SPAN_BITS,  # scratchpad elements of the padded box
                "end": SPAN_BITS,  # scratchpad element behind the last
                "extent": SPAN_BITS,  # DRAM elements from the first to behind the last
                "stop": SPAN_BITS,  # DRAM element behind the last
                "body": SPAN_BITS,  # scratchpad elements of the rows that hold data, with their pads
                "head": RUN_BITS,  # pad words before the first data element; all of them if there is none
                "tail": RUN_BITS,  # pad words behind the last data element
            }
        )


class PlacedLayout(data.StructLayout):
    """What is kept of a :class:`BoxLayout` in a queue, in as many bits as scratchpads have elements. What is
    larger is of an instruction at fault, or of a LOAD for which RES has no room; it is cut off, but for
    ``elements``, which is then as large as can be. Of what moves nothing ``elements`` is 0."""

    def __init__(self, config: Config) -> None:
        names = ("elements", "end", "body", "head", "tail")
        super().__init__({name: sram_bits(config) for name in names})


class MovesLayout(data.StructLayout):
    """What a LOAD or STORE moves, all 0 of other instructions: the ``kind`` of its memory, as its unit counts
    those of its LOADs or STOREs; whether it has ``data``, ``pads``, and scratchpad elements at all
    (``some``)."""

    def __init__(self) -> None:
        super().__init__({"kind": KIND_BITS, "data": 1, "pads": 1, "some": 1})


class EntryLayout(data.StructLayout):
    """An entry of an instruction queue; ``cause`` is what is wrong with the instruction by itself."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "word": INSTRUCTION_BITS,
                "index": INDEX_BITS,
                "box": PlacedLayout(config),
                "moves": MovesLayout(),
                "cause": CAUSE_BITS,
            }
        )


class SizesLayout(data.StructLayout):
    """What of a LOAD or STORE is multiplied: the elements of a row with its pads, the rows of pads above and
    below, and how many rows come behind the first."""

    def __init__(self) -> None:
        super().__init__({"width": _PADDED_BITS, "pads_y": GAP_BITS, "rows": SIZE_BITS})


def measure(m: Module, transfer: Any, *, padded: Value | None = None) -> data.View:
    """What there is to multiply; combinational. The arguments are those of :func:`multiply_out`."""
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
    """The products that starting a LOAD or STORE needs; combinational.

    Args:
        m: where the logic goes.
        transfer: the LOAD or STORE.
        padded: whether the bits of pads mean pads; None if they do in any case.
        sizes: what :func:`measure` makes of it, if that is known already.
    """
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
    """What follows from the products; combinational. The arguments are those of :func:`multiply_out`."""
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
    """The box of a LOAD or STORE as it is kept; combinational."""
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

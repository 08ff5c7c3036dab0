"""The strip layouts and row exchanges of a chain's tensors."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from accel.core.config import Config
from accel.network.network_part import NetworkPart
from accel.network.row_exchange import SOURCE, TARGET, TRANSPOSED, RowExchange, row_exchanges
from accel.network.strip_layout import PictureSize, StripLayout, merge_layouts, picture_size


class TensorLayouts(Struct, frozen=True, kw_only=True):
    """The layouts of a tensor in strips.

    Attributes:
        layouts: by buffer name. The plain buffer has the tensor's name.
        exchanges: in order, with the names of their buffers. They fill the other buffers and the halos.
    """

    size: PictureSize
    element_bytes: int
    layouts: dict[str, StripLayout]
    written: str
    exchanges: tuple[tuple[RowExchange, dict[str, str]], ...]

    @property
    def buffers(self) -> tuple[str, ...]:
        return tuple(self.layouts)

    @property
    def scratch_buffers(self) -> tuple[str, ...]:
        return tuple(names[TRANSPOSED] for _, names in self.exchanges if TRANSPOSED in names)

    def buffer_of(self, layout: StripLayout) -> str:
        return next(name for name, one in self.layouts.items() if one.contains(layout))

    def nbytes(self, buffer: str) -> int:
        if buffer in self.layouts:
            return self.size.elements(self.layouts[buffer]) * self.element_bytes
        exchange = next(one for one, names in self.exchanges if names.get(TRANSPOSED) == buffer)
        return exchange.scratch_elements * self.element_bytes


def layouts_read(part: NetworkPart, name: str) -> list[StripLayout]:
    if part.layouts is None or part.layer is None:
        return []
    return [
        part.layouts.reads[one.name]
        for one in part.layer.operands
        if one.tensor == name and one.name in part.layouts.reads
    ]


def tensor_layouts(
    layers: Sequence[NetworkPart], needed: Collection[str], parts: Sequence[NetworkPart], config: Config
) -> dict[str, TensorLayouts]:
    """Return the layouts of tensors in strips."""
    found: dict[str, TensorLayouts] = {}
    for part in layers:
        name = part.fused.output
        readers = [one for one in parts if name in one.fused.inputs]
        read = [layout for one in readers for layout in layouts_read(one, name)]
        if part.layouts is None and not read:
            continue
        size = picture_size(part.output, config)
        assert size is not None  # other tensors have no strips
        plain = StripLayout(strips=1, lines=size.height)
        needs_plain = name in needed or any(_reads_plain(one, name) for one in readers)
        writes = plain if part.layouts is None else part.layouts.writes
        written, others = merge_layouts(writes, read, plain=plain if needs_plain else None)
        names = {one: name if one.is_plain else f"{name} in {one}" for one in (written, *others)}
        steps = []
        for number, exchange in enumerate(row_exchanges(config, size, written, others)):
            buffers = {SOURCE: names[written], TARGET: names[exchange.target]}
            if exchange.scratch_elements:
                buffers[TRANSPOSED] = f"rows of {name}" if not number else f"rows of {name}, {number}"
            steps.append((exchange, buffers))
        found[name] = TensorLayouts(
            size=size,
            element_bytes=config.out_element_bytes,
            layouts={buffer: layout for layout, buffer in names.items()},
            written=names[written],
            exchanges=tuple(steps),
        )
    return found


def _reads_plain(part: NetworkPart, name: str) -> bool:
    if part.layer is None:
        return True
    in_strips = {} if part.layouts is None else part.layouts.reads
    return any(
        one.tensor == name and one.name not in in_strips for one in part.layer.operands if not one.generated
    )

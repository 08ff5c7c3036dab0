"""The layouts in which the tensors of a chain lie in DRAM, and the exchanges that fill them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from accel.core.config import Config
from accel.network.exchange import SOURCE, TARGET, TURNED, Exchange, exchanges
from accel.network.layout import Layout, Picture, layouts, picture_of
from accel.network.place import Part


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """A tensor that lies in strips, or is taken so.

    Attributes:
        picture: its size.
        element_bytes: of an element.
        layouts: that it has, by name; that of the tensor itself stands for pictures as they are.
        first: the one that is written.
        exchanges: what fills the others, and lines above and below strips, in order; each with the names of
            what it takes, fills and needs meanwhile.
    """

    picture: Picture
    element_bytes: int
    layouts: dict[str, Layout]
    first: str
    exchanges: tuple[tuple[Exchange, dict[str, str]], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The layouts' names."""
        return tuple(self.layouts)

    @property
    def turned(self) -> tuple[str, ...]:
        """Names of what the exchanges need meanwhile."""
        return tuple(names[TURNED] for _, names in self.exchanges if TURNED in names)

    def key(self, layout: Layout) -> str:
        """The name of the layout that holds one."""
        return next(name for name, one in self.layouts.items() if one.holds(layout))

    def nbytes(self, key: str) -> int:
        """Of a layout, or of what an exchange needs."""
        if key in self.layouts:
            return self.picture.elements(self.layouts[key]) * self.element_bytes
        exchange = next(one for one, names in self.exchanges if names.get(TURNED) == key)
        return exchange.room * self.element_bytes


def taken_layouts(part: Part, name: str) -> list[Layout]:
    """The layouts in which a layer takes a tensor; none if it takes it as it is."""
    if part.laid is None or part.layer is None:
        return []
    return [
        part.laid.takes[one.name]
        for one in part.layer.operands
        if one.tensor == name and one.name in part.laid.takes
    ]


def stored_layouts(
    layers: Sequence[Part], needed: Collection[str], parts: Sequence[Part], config: Config
) -> dict[str, StoredTensor]:
    """The tensors of a chain that lie in strips or are taken so, by name.

    Args:
        layers: of the chain.
        needed: tensors that are needed outside.
        parts: the layers, with those that move nothing.
        config: the machine.
    """
    found: dict[str, StoredTensor] = {}
    for part in layers:
        name = part.stage.output
        takers = [one for one in parts if name in one.stage.inputs]
        wanted = [layout for one in takers for layout in taken_layouts(one, name)]
        if part.laid is None and not wanted:
            continue
        picture = picture_of(part.output, config)
        assert picture is not None  # others have no strips
        usual = Layout(strips=1, lines=picture.height)
        plain = name in needed or any(_takes_plain(one, name) for one in takers)
        makes = usual if part.laid is None else part.laid.makes
        first, others = layouts(makes, wanted, plain=usual if plain else None)
        names = {one: name if one.is_plain else f"{name} in {one}" for one in (first, *others)}
        steps = []
        for number, exchange in enumerate(exchanges(config, picture, first, others)):
            called = {SOURCE: names[first], TARGET: names[exchange.target]}
            if exchange.room:
                called[TURNED] = f"rows of {name}" if not number else f"rows of {name}, {number}"
            steps.append((exchange, called))
        found[name] = StoredTensor(
            picture=picture,
            element_bytes=config.out_element_bytes,
            layouts={key: one for one, key in names.items()},
            first=names[first],
            exchanges=tuple(steps),
        )
    return found


def _takes_plain(part: Part, name: str) -> bool:
    """Whether a part takes a tensor as it is."""
    if part.layer is None:
        return True
    laid = {} if part.laid is None else part.laid.takes
    return any(one.tensor == name and one.name not in laid for one in part.layer.operands if not one.made)

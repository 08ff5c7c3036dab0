"""Numbers by which instructions remember their statement of a nest."""

from collections.abc import Iterable, Sequence

from accel.base.records import replace
from accel.compiler.nest.nest import For, Guard, Node, TileEpilogue
from accel.compiler.target.emitter_registry import Emitted


class StatementNumbers:
    """The numbered statements of a nest, known by identity: equal copies are different statements.

    Attributes:
        statements: by number, each statement with the names of the loops around it.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.statements: list[tuple[Node, tuple[str, ...]]] = []
        self._numbers: dict[int, int] = {}
        """By ``id`` of a statement."""
        self._loops_around: dict[int, tuple[str, ...]] = {}
        """By ``id`` of an epilogue, the names of the loops around it."""
        self._add(nodes, ())

    def _add(self, nodes: Sequence[Node], loops: tuple[str, ...]) -> None:
        for node in nodes:
            if isinstance(node, For):
                self._add(node.body, (*loops, node.var.name))
            elif isinstance(node, Guard):
                self._add(node.body, loops)
            elif isinstance(node, TileEpilogue):
                self._loops_around[id(node)] = loops
            else:
                self._numbers[id(node)] = len(self.statements)
                self.statements.append((node, loops))

    def add_epilogue(self, epilogue: TileEpilogue, nodes: Sequence[Node]) -> None:
        self._add(nodes, self._loops_around[id(epilogue)])

    def add_same(self, node: Node, statement: Node) -> None:
        self._numbers[id(node)] = self._numbers[id(statement)]

    def number(self, node: Node) -> int:
        return self._numbers[id(node)]

    def labelled(self, node: Node, emitted: Iterable[Emitted]) -> list[Emitted]:
        number = self._numbers[id(node)]
        return [replace(one, statement=number) for one in emitted]

"""Order: parts in as few runs of machine parts as a simple rule finds."""

from collections.abc import Collection, Sequence

from accel.graph.graph import Graph
from accel.network.place import Part


def schedule(
    graph: Graph, parts: Sequence[Part], views: Collection[str] = ()
) -> tuple[tuple[Part, ...], ...]:
    """The parts in groups, of the machine and of the host in turn; each behind those whose results it takes.

    A group takes every part of its place that can run by then. Parts that move nothing go with the machine.

    Args:
        graph: the parts'.
        parts: in any order in which they can run.
        views: results of parts that are to move nothing where machine parts take them.
    """
    known = {*graph.inputs, *graph.constants}
    rest, groups = list(parts), list[tuple[Part, ...]]()
    host = False
    while rest:
        group: list[Part] = []
        for part in rest:
            on_machine = part.on_machine or part.stage.output in views
            wanted = part.moves_nothing or on_machine != host
            if wanted and known.issuperset(part.stage.inputs):
                group.append(part)
                known.add(part.stage.output)
        taken = {id(part) for part in group}
        rest = [part for part in rest if id(part) not in taken]
        if group:
            groups.append(tuple(group))
        host = not host
    return tuple(groups)

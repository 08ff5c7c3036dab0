"""An order of execution that switches rarely between machine and host."""

from collections.abc import Collection, Sequence

from accel.graph.graph import Graph
from accel.network.placement import NetworkPart


def order_parts(
    graph: Graph, parts: Sequence[NetworkPart], aliases: Collection[str] = ()
) -> tuple[tuple[NetworkPart, ...], ...]:
    """Group parts, alternating between machine and host.

    Greedy: a group has every part of one placement that can run by then. Parts that move nothing join the
    group of the machine.

    Args:
        aliases: results of parts that move nothing if layers of the machine read them.
    """
    available = {*graph.inputs, *graph.constants}
    rest, groups = list(parts), list[tuple[NetworkPart, ...]]()
    is_host_group = False
    while rest:
        group: list[NetworkPart] = []
        for part in rest:
            on_machine = part.on_machine or part.fused.output in aliases
            fits = part.moves_nothing or on_machine != is_host_group
            if fits and available.issuperset(part.fused.inputs):
                group.append(part)
                available.add(part.fused.output)
        grouped = {id(part) for part in group}
        rest = [part for part in rest if id(part) not in grouped]
        if group:
            groups.append(tuple(group))
        is_host_group = not is_host_group
    return tuple(groups)

"""Host nodes that cut a network into several programs."""

from collections import Counter

from msgspec import Struct

from accel.network.network_program import NetworkProgram


class Cut(Struct, frozen=True, kw_only=True):
    """Host nodes of one kind between two layers of the machine.

    ``reason`` says why the machine lacks most of them.
    """

    operator: str
    nodes: int
    reason: str

    def describe(self) -> str:
        return f"{self.nodes} {self.operator}: {self.reason}"


def network_cuts(program: NetworkProgram) -> tuple[Cut, ...]:
    """Return the cuts, the most frequent first.

    For example, ``57 Mul: the machine has no Mul``. A Concat or Slice inside a program does not count.
    """
    parts = program.parts
    in_place = {part.fused.output for chain in program.chains for part in chain.parts if not part.on_machine}
    after_machine: set[str] = set()
    for part in parts:
        if part.on_machine or not after_machine.isdisjoint(part.fused.inputs):
            after_machine.add(part.fused.output)
    before_machine: set[str] = set()
    for part in reversed(parts):
        if part.on_machine or part.fused.output in before_machine:
            before_machine.update(part.fused.inputs)
    cutting = [
        part
        for part in parts
        if not part.on_machine
        and not part.moves_nothing
        and part.fused.output not in in_place
        and part.fused.output in before_machine
        and not after_machine.isdisjoint(part.fused.inputs)
    ]
    counts = Counter(part.fused.main.operator.kind for part in cutting)
    found = []
    for operator, nodes in counts.most_common():
        reasons = Counter(part.reason for part in cutting if part.fused.main.operator.kind == operator)
        found.append(Cut(operator=operator, nodes=nodes, reason=reasons.most_common(1)[0][0]))
    return tuple(found)

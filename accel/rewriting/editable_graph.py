"""A graph that rules change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

from msgspec import Struct, field

from accel.base.records import replace
from accel.base.unique_names import Names
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.movement_operators import Identity
from accel.rewriting.pattern import (
    Match,
    NewConstant,
    NewNode,
    OpPattern,
    RestPattern,
    TensorPattern,
    Term,
    Value,
)
from accel.rewriting.rule import Rule


class _Made(Struct):
    """The changes of an application of a rule.

    Attributes:
        names: of terms, by identity.
        renamed: tensors that got a root's name.
        changed: as returned by :meth:`EditableGraph.replace`.
    """

    rule: str
    names: dict[int, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)


class EditableGraph:
    """A graph in which rules are matched and applied one after another.

    Readers are kept up to date, so the time of a match and its replacement depends only on the subgraph.
    """

    def __init__(self, graph: Graph, names: Names | None = None) -> None:
        """Graphs with the same ``names`` use equal names only for equal tensors."""
        self._old = graph
        self._tensors: dict[str, Tensor] = dict(graph.tensors)
        self._constants: dict[str, Array] = dict(graph.constants)
        self._nodes: dict[str, Node] = {node.output: node for node in graph.nodes}
        self._order: dict[str, int] = {node.output: place for place, node in enumerate(graph.nodes)}
        self._readers: dict[str, list[str]] = {name: [] for name in graph.tensors}
        """Results of each tensor's readers, once for each operand."""
        for node in graph.nodes:
            for name in node.inputs:
                self._readers[name].append(node.output)
        self._outputs = frozenset(graph.outputs)
        self._names = names or Names()
        self._names.reserve([*graph.tensors, *(node.name for node in graph.nodes)])

    def graph(self) -> Graph:
        nodes = [self._nodes[name] for name in self.results()]
        return with_nodes(self._old, nodes, tensors=self._tensors.values(), constants=self._constants)

    def unchecked_graph(self) -> Graph:
        """Terms are checked already."""
        nodes = tuple(self._nodes[name] for name in self.results())
        used = dict.fromkeys(self._old.inputs)
        for node in nodes:
            used |= dict.fromkeys((*node.inputs, node.output))
        used |= dict.fromkeys(self._old.outputs)
        return replace(
            self._old,
            nodes=nodes,
            tensors={name: self._tensors[name] for name in used},
            constants={name: self._constants[name] for name in used if name in self._constants},
        )

    def copy(self) -> EditableGraph:
        """New names in the two graphs differ."""
        other = copy(self)
        other._tensors, other._constants = dict(self._tensors), dict(self._constants)
        other._nodes, other._order = dict(self._nodes), dict(self._order)
        other._readers = {name: list(found) for name, found in self._readers.items()}
        return other

    def results(self) -> list[str]:
        """Return all nodes' results, each after its operands, else in the first order."""
        done: dict[str, None] = {}
        for first in sorted(self._nodes, key=self._order.__getitem__):
            waiting = [first]
            while waiting:
                name = waiting[-1]
                needed = [one for one in self._nodes[name].inputs if one in self._nodes and one not in done]
                if needed:
                    waiting += reversed(needed)
                else:
                    done[waiting.pop()] = None
        return list(done)

    def node(self, output: str) -> Node | None:
        return self._nodes.get(output)

    def readers(self, name: str) -> list[str]:
        return self._readers[name]

    def downstream(self, names: Iterable[str], depth: int) -> list[str]:
        found = dict.fromkeys(names)
        last = list(found)
        for _ in range(depth):
            last = [one for name in last for one in self._readers[name] if one not in found]
            found.update(dict.fromkeys(last))
        return list(found)

    def value(self, name: str) -> Value:
        return Value(name, self._tensors[name], self._constants.get(name))

    def definitions(self, key: str) -> Iterable[tuple[Operator, tuple[Value, ...]]]:
        node = self._nodes.get(key)
        if node is not None:
            yield node.operator, tuple(map(self.value, node.inputs))

    def has_one_reader(self, key: str) -> bool:
        return len(self._readers[key]) == 1 and key not in self._outputs

    def matches(self, rule: Rule, output: str) -> Iterator[Match]:
        first, *others = rule.roots
        for match in self._match_op(first, output, Match(self)):
            yield from self._match_roots(others, replace(match, roots=(self.value(output),)))

    def _match_roots(self, patterns: list[OpPattern], match: Match) -> Iterator[Match]:
        if not patterns:
            yield match
            return
        first, *others = patterns
        shared = self._shared_tensor(first, match)
        roots = {root.key for root in match.roots}
        for output in dict.fromkeys(self._readers.get(shared, ())):
            if output in roots:
                continue
            for one in self._match_op(first, output, match):
                root = self.value(output)
                yield from self._match_roots(others, replace(one, roots=(*one.roots, root)))

    def _shared_tensor(self, pattern: OpPattern, match: Match) -> str:
        keys: list[str] = []
        for one in pattern.operands:
            if isinstance(one, TensorPattern) and one.name in match.found:
                keys.append(match.found[one.name].key)
            elif isinstance(one, RestPattern):
                keys += (value.key for value in match.lists.get(one.name, ()))
        assert keys, "the patterns of a rule have no operand in common"
        return min(keys, key=lambda key: len(self._readers[key]))

    def _match_op(self, pattern: OpPattern, output: str, match: Match) -> Iterator[Match]:
        node = self._nodes.get(output)
        if node is None or not isinstance(node.operator, pattern.kinds):
            return
        for one in self._match_operands(pattern.operands, node.inputs, match):
            found = (
                one.with_operator(pattern.name, self.value(output), node.operator) if pattern.name else one
            )
            if found is not None:
                yield found

    def _match_operands(
        self,
        patterns: tuple[TensorPattern | RestPattern | OpPattern, ...],
        inputs: tuple[str, ...],
        match: Match,
    ) -> Iterator[Match]:
        if not patterns:
            if not inputs:
                yield match
            return
        first, others = patterns[0], patterns[1:]
        if isinstance(first, RestPattern):
            values = tuple(map(self.value, inputs))
            is_new = first.name not in match.lists
            if (is_new or match.lists[first.name] == values) and not (
                first.is_constant and any(one.values is None for one in values)
            ):
                yield replace(match, lists={**match.lists, first.name: values})
            return
        if not inputs:
            return
        if isinstance(first, OpPattern):
            for one in self._match_op(first, inputs[0], match):
                yield from self._match_operands(others, inputs[1:], one)
            return
        value = self.value(inputs[0])
        if first.is_constant and value.values is None:
            return
        found = match.with_tensor(first.name, value)
        if found is not None:
            yield from self._match_operands(others, inputs[1:], found)

    def can_replace(self, match: Match, terms: tuple[Term, ...]) -> bool:
        """Whether the graph would change, and no term reads a tensor that depends on another root."""
        is_shared = len({id(term) for term in terms}) < len(terms)
        places = zip(match.roots, terms, strict=True)
        changes = is_shared or any(self._changes(root.key, term) for root, term in places)
        return changes and not self._is_cyclic(match, terms)

    def _changes(self, root: str, term: Term) -> bool:
        node = self._nodes[root]
        if isinstance(term, NewConstant):
            return True
        if isinstance(term, Value):
            is_copy = isinstance(node.operator, Identity) and node.inputs == (term.key,)
            return not (is_copy and root in self._outputs and not self._can_rename(term.key, root))
        inputs = [one.key if isinstance(one, Value) else None for one in term.operands]
        return node.operator != term.operator or list(node.inputs) != inputs

    def _is_cyclic(self, match: Match, terms: Iterable[Term]) -> bool:
        if len(match.roots) == 1:
            return False
        roots = {root.key for root in match.roots}
        seen: set[str] = set()
        waiting = [value.key for term in terms for value in _read_values(term)]
        while waiting:
            name = waiting.pop()
            if name in roots:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self._nodes[name].inputs if name in self._nodes else ()
        return False

    def replace(self, rule: Rule, match: Match, terms: Iterable[Term]) -> list[str]:
        """Replace the roots of a match.

        Returns:
            The results of nodes where rules can match again: nodes that are new, read something new, or whose
            operand has lost a reader.
        """
        made = _Made(rule.name)
        before = {name: None for root in match.roots for name in self._nodes[root.key].inputs}
        pairs = list(zip((root.key for root in match.roots), terms, strict=True))
        # outputs first: a result of several roots gets an output's name
        for root, term in sorted(pairs, key=lambda pair: pair[0] not in self._outputs):
            self._replace_root(root, term, made)
        for name in before:
            made.changed += self._remove_unread(made.renamed.get(name, name))
        return [name for name in dict.fromkeys(made.changed) if name in self._nodes]

    def _replace_root(self, root: str, term: Term, made: _Made) -> None:
        old, place = self._nodes[root], self._order[root]
        is_first = id(term) not in made.names
        if is_first and not isinstance(term, Value):
            inputs = self._emit_operands(term, root, made)
            made.names[id(term)] = root
            self._remove_node(root)
            made.changed += self._readers[root]
            if isinstance(term, NewConstant):
                self._constants[root] = term.contiguous
                return
            self._add_node(replace(old, operator=term.operator, inputs=inputs), place)
            made.changed.append(root)
            return
        new = self._emit(term, root, made)
        self._remove_node(root)
        if self._can_rename(new, root):
            made.renamed[new] = root
            made.changed += [root, *self._readers[root]]
            self._rename(new, root)
        elif root not in self._outputs:
            made.changed += self._redirect(root, new)
        else:
            self._add_node(replace(old, operator=Identity(), inputs=(new,)), place)
            made.changed.append(root)

    def _can_rename(self, name: str, root: str) -> bool:
        """Whether a tensor can get a root's name: an output's, or a given one instead of a rule's."""
        is_named_by_rule = name not in self._old.tensors and root in self._old.tensors
        is_free = name in self._nodes and name not in self._outputs
        return is_free and (root in self._outputs or is_named_by_rule)

    def _rename(self, old: str, new: str) -> None:
        """Let a node compute another tensor, whose node has been removed."""
        node, place = self._nodes[old], self._order[old]
        self._remove_node(old)
        self._add_node(replace(node, output=new), place)
        self._redirect(old, new)

    def _emit_operands(self, term: Term, root: str, made: _Made) -> tuple[str, ...]:
        operands = term.operands if isinstance(term, NewNode) else ()
        return tuple(self._emit(one, root, made) for one in operands)

    def _emit(self, term: Term, root: str, made: _Made) -> str:
        if isinstance(term, Value):
            return made.renamed.get(term.key, term.key)
        if id(term) in made.names:
            return made.names[id(term)]
        name = self._names.fresh(f"{root}/{made.rule}")
        self._tensors[name] = replace(term.tensor, name=name)
        self._readers[name] = []
        made.names[id(term)] = name
        if isinstance(term, NewConstant):
            self._constants[name] = term.contiguous
            return name
        inputs = self._emit_operands(term, root, made)
        self._add_node(Node(name=name, operator=term.operator, inputs=inputs, output=name), self._order[root])
        made.changed.append(name)
        return name

    def _add_node(self, node: Node, place: int) -> None:
        self._nodes[node.output] = node
        self._order[node.output] = place
        for name in node.inputs:
            self._readers[name].append(node.output)

    def _remove_node(self, output: str) -> None:
        for name in self._nodes.pop(output).inputs:
            self._readers[name].remove(output)

    def _redirect(self, old: str, new: str) -> list[str]:
        readers = self._readers.pop(old)
        del self._tensors[old]
        for output in dict.fromkeys(readers):
            node = self._nodes[output]
            inputs = tuple(new if name == old else name for name in node.inputs)
            self._nodes[output] = replace(node, inputs=inputs)
        self._readers[new] += readers
        return readers

    def _remove_unread(self, name: str) -> list[str]:
        """Remove the node of an unread tensor, then its operands'. Return nodes that became only readers."""
        waiting, last_readers = [name], list[str]()
        while waiting:
            one = waiting.pop()
            readers = self._readers.get(one, [])
            if len(readers) == 1:
                last_readers += readers
            node = self._nodes.get(one)
            if node is not None and not readers and one not in self._outputs:
                self._remove_node(one)
                waiting += node.inputs
        return last_readers


def _read_values(term: Term) -> Iterator[Value]:
    if isinstance(term, Value):
        yield term
    elif isinstance(term, NewNode):
        for one in term.operands:
            yield from _read_values(one)

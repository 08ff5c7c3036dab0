"""An e-graph of tensors, in egglog: many equal graphs in one structure.

An e-class is a set of equal tensors, an e-node an operator on e-classes. Python names an e-class by a
reference, a leaf with a number. Operators with attributes and type of result are numbers, too. So egglog
stores only integers and e-classes::

    (Ref 3)              a tensor, for example an input or a constant
    (Op2 7 a b)          operator 7 on the e-classes a and b

egglog matches patterns by joins over these relations, and keeps e-nodes with equal operands equal (congruence
closure). Conditions and replacements of rules are Python.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import product
from typing import Any

from msgspec import Struct, field

from accel.base.errors import AccelError
from accel.base.optional_extras import not_installed
from accel.graph.graph import Graph
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Tensor
from accel.rewriting.content_numbers import ContentNumbers
from accel.rewriting.pattern import (
    Match,
    NewConstant,
    OpPattern,
    RestPattern,
    TensorPattern,
    Term,
    Value,
)
from accel.rewriting.rule import Rule

_MATCHING = "matching"
_MOST_VARIANTS = 64
"""Combinations of operand counts for which one rule is matched."""


class ENode(Struct, frozen=True):
    operator: int
    operands: tuple[int, ...]


class _Query(Struct):
    """A pattern with fixed counts of operands, as an egglog rule that fills a relation.

    Attributes:
        classes: names of tensors in the first columns.
        lists: operands of each ``rest``, in the next columns.
        operators: names in the last columns.
    """

    relation: str
    classes: list[str] = field(default_factory=list)
    lists: dict[str, int] = field(default_factory=dict)
    operators: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)


class EMatch(Struct, frozen=True):
    """References and operator numbers of a match."""

    classes: tuple[int, ...]
    operators: tuple[int, ...]


class TensorEGraph:
    """Equal tensors and the operators that compute them.

    Attributes:
        nodes: by e-class, as of the last :meth:`rebuild`.
        tensors, constants: types and values by reference.
    """

    def __init__(self, graph: Graph, numbers: ContentNumbers) -> None:
        self._bindings = _import_egglog()
        self._egraph: Any = self._bindings.EGraph()
        self._numbers = numbers
        self.tensors: list[Tensor] = []
        self.constants: dict[int, Array] = {}
        self._operators: list[tuple[Operator, Tensor]] = []
        self._operator_numbers: dict[tuple[int, int], int] = {}
        self._references: dict[int, int] = {}
        self._known: dict[ENode, int] = {}
        self._canonical: list[int] = []
        self._arities: set[int] = set()
        self._kinds: dict[tuple[type[Operator], ...], str] = {}
        self._queries: dict[tuple[str, tuple[int, ...]], _Query] = {}
        self._pending: list[str] = [
            f"(sort T) (constructor Ref (i64) T) (relation Constant (T)) (ruleset {_MATCHING})"
        ]
        self.nodes: dict[int, list[ENode]] = {}
        self.names: dict[int, str] = {}
        self.creators: dict[ENode, str] = {}
        """The rules that added e-nodes to the given graph's."""
        references: dict[str, int] = {}
        for name in graph.inputs:
            references[name] = self._new_reference(graph.tensors[name])
        for name, values in graph.constants.items():
            references[name] = self._constant(graph.tensors[name], values)
        for node in graph.nodes:
            operands = tuple(references[name] for name in node.inputs)
            out = graph.tensors[node.output]
            references[node.output] = self.add(node.operator, operands, out, "")
        for name, reference in references.items():
            self.names.setdefault(reference, name)
        self.leaves = {references[name] for name in graph.inputs} | {*self.constants}
        self.references = references
        self.rebuild()

    @property
    def count(self) -> int:
        return sum(map(len, self.nodes.values()))

    def find(self, reference: int) -> int:
        return self._canonical[reference] if reference < len(self._canonical) else reference

    def operator(self, number: int) -> Operator:
        return self._operators[number][0]

    def result(self, number: int) -> Tensor:
        return self._operators[number][1]

    # --- changes ---------------------------------------------------------------------------------

    def _new_reference(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _constant(self, tensor: Tensor, values: Array) -> int:
        number = self._numbers.constant(tensor, values)
        if number not in self._references:
            reference = self._references[number] = self._new_reference(tensor)
            self.constants[reference] = values
            self._pending.append(f"(Constant (Ref {reference}))")
        return self._references[number]

    def _operator_number(self, operator: Operator, out: Tensor, arity: int) -> int:
        key = self._numbers.operator(operator), self._numbers.type_of(out)
        if key not in self._operator_numbers:
            number = self._operator_numbers[key] = len(self._operators)
            self._operators.append((operator, out))
            for kinds, relation in self._kinds.items():
                if isinstance(operator, kinds):
                    self._pending.append(f"({relation} {number})")
        if arity not in self._arities:
            self._arities.add(arity)
            self._pending.append(f"(constructor Op{arity} (i64{' T' * arity}) T)")
        return self._operator_numbers[key]

    def add(self, operator: Operator, operands: tuple[int, ...], out: Tensor, rule: str) -> int:
        """Return the reference of the new e-node's e-class."""
        number = self._operator_number(operator, out, len(operands))
        node = ENode(number, tuple(map(self.find, operands)))
        if node not in self._known:
            reference = self._known[node] = self._new_reference(out)
            references = "".join(f" (Ref {one})" for one in node.operands)
            self._pending.append(f"(union (Op{len(operands)} {number}{references}) (Ref {reference}))")
            if rule:
                self.creators.setdefault(node, rule)
        return self._known[node]

    def add_term(self, term: Term, rule: str, made: dict[int, int]) -> int:
        """``made`` has references of this replacement's terms, by identity."""
        if isinstance(term, Value):
            return int(term.key)
        if id(term) not in made:
            if isinstance(term, NewConstant):
                made[id(term)] = self._constant(term.tensor, term.contiguous)
            else:
                operands = tuple(self.add_term(one, rule, made) for one in term.operands)
                made[id(term)] = self.add(term.operator, operands, term.tensor, rule)
        return made[id(term)]

    def union(self, one: int, other: int) -> None:
        if self.find(one) != self.find(other):
            self._pending.append(f"(union (Ref {one}) (Ref {other}))")

    def rebuild(self) -> None:
        self._run(self._pending)
        self._pending = []
        functions = self._egraph.freeze().functions
        to_int = self._egraph.value_to_i64
        names: dict[Any, int] = {}
        of_reference: dict[int, Any] = {}
        for row in functions["Ref"].rows:
            reference = of_reference_number = to_int(row.inputs[0])
            of_reference[of_reference_number] = row.output
            names[row.output] = min(reference, names.get(row.output, reference))
        self._names_of_classes = names
        # references without a row are new inputs without readers
        self._canonical = [
            names[of_reference[one]] if one in of_reference else one for one in range(len(self.tensors))
        ]
        found: dict[int, set[ENode]] = {}
        for arity in self._arities:
            for row in functions[f"Op{arity}"].rows:
                operator, *operands = row.inputs
                node = ENode(to_int(operator), tuple(names[one] for one in operands))
                found.setdefault(names[row.output], set()).add(node)
        self.nodes = {
            reference: sorted(nodes, key=lambda one: (one.operator, one.operands))
            for reference, nodes in sorted(found.items())
        }
        self._known = {node: reference for reference, nodes in self.nodes.items() for node in nodes}
        creators: dict[ENode, str] = {}
        for node, rule in self.creators.items():
            creators.setdefault(ENode(node.operator, tuple(map(self.find, node.operands))), rule)
        self.creators = creators
        for reference in list(self.constants):
            self.constants.setdefault(self.find(reference), self.constants[reference])
        self.leaves = {self.find(one) for one in (*self.leaves, *self.constants)}
        for reference, name in sorted(self.names.items()):
            self.names.setdefault(self.find(reference), name)

    def _run(self, texts: Iterable[str]) -> None:
        """Run texts one by one, because the parser's memory grows with the square of its commands."""
        for text in texts:
            self._egraph.run_program(*self._egraph.parse_program(text))

    # --- matches ---------------------------------------------------------------------------------

    def matches(
        self, rules: Iterable[Rule], known: Container[tuple[str, EMatch]] = ()
    ) -> Iterator[tuple[Rule, Match, EMatch]]:
        """Yield matches that are not in ``known`` with the rule's name."""
        queries = [(rule, query) for rule in rules for query in self._queries_of(rule)]
        self._run([*self._pending, f"(run-schedule (run {_MATCHING}))"])
        self._pending = []
        functions = self._egraph.freeze().functions
        to_int, names = self._egraph.value_to_i64, self._names_of_classes
        for rule, query in queries:
            count = len(query.classes) + sum(query.lists.values())
            found = {
                EMatch(
                    tuple(names[one] for one in row.inputs[:count]),
                    tuple(to_int(one) for one in row.inputs[count:]),
                )
                for row in functions[query.relation].rows
            }
            for one in sorted(found, key=lambda one: (one.classes, one.operators)):
                if (rule.name, one) not in known:
                    yield rule, self._match(rule, query, one), one

    def _match(self, rule: Rule, query: _Query, found: EMatch) -> Match:
        values = [self.value(one) for one in found.classes]
        tensors = dict(zip(query.classes, values, strict=False))
        lists: dict[str, tuple[Value, ...]] = {}
        at = len(query.classes)
        for name, count in query.lists.items():
            lists[name] = tuple(values[at : at + count])
            at += count
        operators = dict(zip(query.operators, map(self.operator, found.operators), strict=True))
        return Match(
            self,
            roots=tuple(tensors[_root(at)] for at in range(len(rule.roots))),
            found={name: one for name, one in tensors.items() if not name.startswith("?")},
            lists=lists,
            named={name: one for name, one in operators.items() if not name.startswith("?")},
        )

    def value(self, reference: int) -> Value:
        return Value(str(reference), self.tensors[reference], self.constants.get(reference))

    def definitions(self, key: str) -> Iterator[tuple[Operator, tuple[Value, ...]]]:
        for node in self.nodes.get(self.find(int(key)), ()):
            yield self.operator(node.operator), tuple(map(self.value, node.operands))

    def has_one_reader(self, key: str) -> bool:
        return True

    def _queries_of(self, rule: Rule) -> list[_Query]:
        open_patterns = [one for root in rule.roots for one in root.operators() if _ends_with_rest(one)]
        counts = [self._counts(one) for one in open_patterns]
        found = []
        for number, combination in enumerate(product(*counts)):
            if number >= _MOST_VARIANTS:
                break
            key = rule.name, combination
            if key not in self._queries:
                query = self._compile(rule, iter(combination), f"Match{len(self._queries)}_")
                if query is None:
                    continue
                self._queries[key] = query
            found.append(self._queries[key])
        return found

    def _counts(self, pattern: OpPattern) -> list[int]:
        fixed = len(pattern.operands) - 1
        counts = {
            len(node.operands)
            for nodes in self.nodes.values()
            for node in nodes
            if isinstance(self.operator(node.operator), pattern.kinds)
        }
        return sorted(count - fixed for count in counts if count >= fixed)

    def _compile(self, rule: Rule, counts: Iterator[int], relation: str) -> _Query | None:
        """Return None if lists of one name differ in length."""
        query = _Query(relation)
        variables: dict[str, str] = {}
        operators: dict[str, str] = {}
        for at, root in enumerate(rule.roots):
            variable = variables[_root(at)] = f"r{at}"
            if not self._compile_op(root, variable, counts, query, variables, operators):
                return None
        query.facts += [f"(!= r{at} r{other})" for at in range(len(rule.roots)) for other in range(at)]
        query.classes = [name for name in variables if not name.startswith("*")]
        query.operators = list(operators)
        lists = [variables[f"*{name}.{at}"] for name, count in query.lists.items() for at in range(count)]
        columns = [variables[name] for name in query.classes] + lists
        row = " ".join([*columns, *operators.values()])
        types = " ".join(["T"] * len(columns) + ["i64"] * len(operators))
        self._pending.append(f"(relation {relation} ({types}))")
        self._pending.append(f"(rule ({' '.join(query.facts)}) (({relation} {row})) :ruleset {_MATCHING})")
        return query

    def _compile_op(
        self,
        pattern: OpPattern,
        variable: str,
        counts: Iterator[int],
        query: _Query,
        variables: dict[str, str],
        operators: dict[str, str],
    ) -> bool:
        if pattern.name:
            known = variables.setdefault(pattern.name, variable)
            if known != variable:
                query.facts.append(f"(= {known} {variable})")
        name = pattern.name if pattern.name and pattern.name not in operators else f"?{len(operators)}"
        number = operators[name] = f"o{len(operators)}"
        rest = next(counts) if _ends_with_rest(pattern) else 0
        inner: list[tuple[OpPattern, str]] = []
        operands: list[str] = []
        for one in pattern.operands:
            if isinstance(one, RestPattern):
                if query.lists.setdefault(one.name, rest) != rest:
                    return False
                for at in range(rest):
                    operand = variables.setdefault(f"*{one.name}.{at}", f"v{len(variables)}")
                    operands.append(operand)
                    query.facts += [f"(Constant {operand})"] if one.is_constant else []
            elif isinstance(one, TensorPattern):
                operand = variables.setdefault(one.name, f"v{len(variables)}")
                operands.append(operand)
                query.facts += [f"(Constant {operand})"] if one.is_constant else []
            else:
                operand = f"v{len(variables)}"
                variables[f"?{operand}"] = operand
                inner.append((one, operand))
                operands.append(operand)
        if len(operands) not in self._arities:
            return False
        query.facts.append(f"(= {variable} (Op{len(operands)} {number} {' '.join(operands)}))")
        query.facts.append(f"({self._kind(pattern.kinds)} {number})")
        return all(
            self._compile_op(one, operand, counts, query, variables, operators) for one, operand in inner
        )

    def _kind(self, kinds: tuple[type[Operator], ...]) -> str:
        """Return the relation of operators of some classes.

        Names end in ``_``: egglog appends numbers, and "Kind2" and "12" must not be "Kind21" and "2".
        """
        if kinds not in self._kinds:
            relation = self._kinds[kinds] = f"Kind{len(self._kinds)}_"
            self._pending.append(f"(relation {relation} (i64))")
            for number, (operator, _) in enumerate(self._operators):
                if isinstance(operator, kinds):
                    self._pending.append(f"({relation} {number})")
        return self._kinds[kinds]


def _ends_with_rest(pattern: OpPattern) -> bool:
    return bool(pattern.operands) and isinstance(pattern.operands[-1], RestPattern)


def _root(at: int) -> str:
    return f"?root{at}"


def _import_egglog() -> Any:
    try:
        import egglog.bindings
    except ImportError:
        raise AccelError(not_installed("equality saturation needs egglog", "rewrite")) from None
    return egglog.bindings

"""Emission of a tensorized nest's instructions, by running its loops at compile time."""

from collections.abc import Sequence

from accel.compiler.codegen.call_emission import CallEmission
from accel.compiler.codegen.copy_emission import CopyEmission
from accel.compiler.codegen.dram_map import DramMap, block_count
from accel.compiler.codegen.emission_state import EmissionState
from accel.compiler.codegen.perfect_nests import Box, PerfectNest, PerfectNests
from accel.compiler.codegen.reorder_pass import EmittedProgram
from accel.compiler.codegen.store_emission import StoreEmission
from accel.compiler.codegen.sum_emission import SumEmission
from accel.compiler.expr.linear_expressions import Known, evaluate, value_of
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.epilogue_lowering import lower_epilogue
from accel.compiler.nest.nest import (
    AluCall,
    Buffer,
    Call,
    Copy,
    For,
    Guard,
    HostConstant,
    HostPack,
    Nest,
    Node,
    StoreEpilogue,
    TileEpilogue,
    ZeroBuffer,
    walk_nodes,
)
from accel.compiler.target.builtin_emitters import fill_zero
from accel.compiler.target.emitter_registry import AccessPtr, Target
from accel.core.config import Config


class Emission:
    """The instructions of a nest in program order, and the map of DRAM."""

    def __init__(self, nest: Nest, config: Config) -> None:
        self.state = state = EmissionState(nest, config)
        self._calls = CallEmission(state)
        self._copies = CopyEmission(state)
        self._stores = StoreEmission(state)
        self._sums = None if state.unstarted is None else SumEmission(state, state.unstarted, self._calls)
        self._nests = PerfectNests(state.addresses, self._lowered_epilogue)
        self._epilogues: dict[int, list[Node]] = {}
        """By ``id`` of an epilogue, its lowered nodes."""
        self._extents: dict[int, Known[int]] = {}
        """By ``id`` of a loop, its extent, which may depend on outer loops."""
        self._run(nest.body, {})
        for cached in (self._calls, self._copies, self._sums):
            if cached is not None:
                cached.clear()
        for node in walk_nodes(nest.body):
            if isinstance(node, Copy):
                self._copies.reserve(node)

    @property
    def dram(self) -> DramMap:
        return self.state.dram

    @property
    def statements(self) -> list[tuple[Node, tuple[str, ...]]]:
        return self.state.statements.statements

    def program(self) -> EmittedProgram:
        loads: dict[Buffer, set[int]] = {}
        for number, (node, _) in enumerate(self.statements):
            if isinstance(node, Copy):
                loads.setdefault(node.target.buffer, set()).add(number)
        return EmittedProgram(
            emitted=self.state.emitted,
            config=self.state.config,
            resident_loads=frozenset(
                number for buffer, numbers in loads.items() if buffer.is_resident for number in numbers
            ),
            load_orders=tuple(
                (frozenset(loads.get(late, ())), frozenset(loads.get(early, ())))
                for late, early in self.state.nest.load_orders
            ),
        )

    def _run(self, nodes: Sequence[Node], env: dict[IterVar, int]) -> None:
        """``env`` has the values of outer loop variables and is changed."""
        for node in nodes:
            if isinstance(node, For):
                self._run_loop(node, env)
            elif isinstance(node, Copy):
                self._copies.emit(node, env)
            elif isinstance(node, TileEpilogue):
                self._run(self._lowered_epilogue(node), env)
            elif isinstance(node, ZeroBuffer):
                self._emit_clear(node)
            elif isinstance(node, HostPack | HostConstant):
                continue  # the host does it
            elif isinstance(node, Guard):
                if all(evaluate(a, env) < evaluate(b, env) for a, b in node.conditions):
                    self._run(node.body, env)
            elif isinstance(node, StoreEpilogue):
                self._stores.emit(node, env)
            else:
                assert isinstance(node, Call | AluCall)
                self._emit_box(node, Box({}, ()), env)

    def _lowered_epilogue(self, node: TileEpilogue) -> list[Node]:
        if id(node) not in self._epilogues:
            self._epilogues[id(node)] = lower_epilogue(node)
            self.state.statements.add_epilogue(node, self._epilogues[id(node)])
        return self._epilogues[id(node)]

    def _run_loop(self, node: For, env: dict[IterVar, int]) -> None:
        found = self._nests.at(node)
        if found is not None:
            self._run_perfect_nest(found, 0, env)
            return
        for value in range(self._extent(node, env)):
            env[node.var] = value
            self._run(node.body, env)

    def _run_perfect_nest(self, nest: PerfectNest, depth: int, env: dict[IterVar, int]) -> None:
        if depth < len(nest.outer):
            loop = nest.outer[depth]
            for value in range(self._extent(loop, env)):
                env[loop.var] = value
                self._run_perfect_nest(nest, depth + 1, env)
            return
        box = nest.box.at(env)
        if isinstance(box, Box):
            self._emit_box(nest.leaf, box, env)

    def _extent(self, loop: For, env: dict[IterVar, int]) -> int:
        found = self._extents.get(id(loop))
        if found is None:
            found = self._extents[id(loop)] = value_of(loop.extent)
        return found.at(env)

    def _emit_box(self, leaf: Call | AluCall, box: Box, env: dict[IterVar, int]) -> None:
        if self._sums is not None and isinstance(leaf, Call) and leaf.form != "compute":
            self._sums.emit(leaf, box, env)
        else:
            self._calls.emit_box(leaf, box, env)

    def _emit_clear(self, node: ZeroBuffer) -> None:
        buffer, addresses = node.buffer, self.state.addresses
        assert buffer.scope is not None
        elements = buffer.sets * block_count(buffer, addresses.elements[buffer])
        pointer = AccessPtr(buffer.scope.name, addresses.bases[buffer], (1,))
        target = Target(config=self.state.config, extents=(elements,))
        self.state.emitted.extend(self.state.statements.labelled(node, fill_zero(target, pointer)))

"""From a schedule to its tensorized nest: blocks become intrinsic calls, copies become DMA.

A call replaces the loops from the tensorized one inward. A copy between DRAM and a scratchpad becomes one
``dma_copy2d`` per iteration of its loops, up to the innermost one at which another stage is computed.
"""

from __future__ import annotations

from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.expr.guarded_loops import hoist
from accel.compiler.expr.linear_expressions import (
    at_zero,
    bounds,
    holds_in_loops,
    simplify,
    variables,
)
from accel.compiler.expr.quantized_expressions import Parameter
from accel.compiler.expr.scalar_expressions import (
    Cast,
    Condition,
    Const,
    Expr,
    IterVar,
    Read,
    arithmetic,
    format_expr,
    reads,
)
from accel.compiler.expr.table_expressions import TableEntry
from accel.compiler.expr.tensor_expressions import Compute, Tensor, reduction, sum_limit
from accel.compiler.nest.alu_epilogue_calls import block_epilogue
from accel.compiler.nest.copy_calls import copy_call
from accel.compiler.nest.epilogue_matching import Chain
from accel.compiler.nest.host_packed_tensors import is_host_made, is_zero_padded
from accel.compiler.nest.in_place_accumulators import alias_chains
from accel.compiler.nest.intrinsic_unification import (
    Access,
    Operand,
    check_short_blocks,
    map_axes,
    match,
)
from accel.compiler.nest.loop_nest_lowering import finish, guarded, wrap_loop
from accel.compiler.nest.nest import (
    Buffer,
    Call,
    ConstantParameters,
    ConstantTable,
    HostPack,
    IdentityMatrix,
    Nest,
    Node,
    TileEpilogue,
)
from accel.compiler.nest.stage_loops import StageNest, block_loops, first_reduce
from accel.compiler.nest.stage_placement import Lowering
from accel.compiler.nest.store_epilogue_calls import store_epilogue
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.target.emitter_registry import operand_scopes
from accel.compiler.target.intrinsic_declaration import AluIntrin, CopyIntrin, StoreIntrin, TensorIntrin
from accel.image.packed_layout import BlockDiagonal, Interleaved, Preparation


def tensorize(schedule: Schedule) -> Nest:
    """Return the nest of a schedule with its intrinsics in place.

    Raises:
        ScheduleError: as for :func:`accel.te.lower`.
        TensorizeError: a block does not unify with its intrinsic, or a stage in a scratchpad is neither
            tensorized nor a copy.
    """
    lowering = Lowering(schedule)
    chains = alias_chains(lowering)
    tensorizer = _Tensorizer(lowering, chains)
    body: list[Node] = []
    for stage in lowering.root_stages():
        body.extend(tensorizer.nodes_of(stage))
    return replace(finish(lowering, body), sum_limits=_sum_limits(lowering), preparations=_prepared(lowering))


def _sum_limits(lowering: Lowering) -> dict[Buffer, int]:
    found = ((stage, sum_limit(reduction(stage.body))) for stage in lowering.schedule.stages)
    return {lowering.buffers[stage.tensor]: limit for stage, limit in found if limit is not None}


def _prepared(lowering: Lowering) -> dict[Buffer, Preparation]:
    found = (stage.preparation for stage in lowering.schedule.stages)
    return {lowering.buffers[one[0]]: one[1] for one in found if one is not None}


class _Tensorizer:
    def __init__(self, lowering: Lowering, chains: dict[Stage, Chain]) -> None:
        self.lowering = lowering
        self.chains = chains

    def nodes_of(self, stage: Stage) -> list[Node]:
        nest = self.lowering.nests[stage]
        if stage.host_packing is not None:
            return [self._host_node(stage)]
        if stage.tensorized is not None and isinstance(stage.tensorized[1], StoreIntrin):
            block = stage.leaves.index(stage.tensorized[0])
            self._check_block(nest, block)
            return self._loops(nest, 0, block, [store_epilogue(self.lowering, nest, block)], [])
        if stage.tensorized is not None and not isinstance(stage.tensorized[1], CopyIntrin):
            block = stage.leaves.index(stage.tensorized[0])
            self._check_block(nest, block)
            if isinstance(stage.tensorized[1], AluIntrin):
                return self._alu(nest, block)
            return self._loops(nest, 0, block, self._block_nodes(nest, block), self._reset_nodes(nest, block))
        block = self._copy_position(nest)
        return self._loops(nest, 0, block, [copy_call(self.lowering, nest, block)], [])

    def _host_node(self, stage: Stage) -> Node:
        if stage in self.lowering.attachments or stage.scope is not None:
            raise TensorizeError(
                f"{stage.name} is computed by the host when it packs; it stays in DRAM, outside of all loops"
            )
        target = self.lowering.buffers[stage.tensor]
        if stage.host_packing == "identity":
            return IdentityMatrix(target)
        if stage.host_packing == "table":
            assert isinstance(stage.body, TableEntry)
            return ConstantTable(target, stage.body.entries)
        assert isinstance(stage.host_packing, BlockDiagonal | Interleaved)
        if isinstance(stage.body, Parameter) and not reads(stage.body):
            assert isinstance(stage.host_packing, Interleaved)
            return ConstantParameters(target, stage.host_packing, stage.body.offset)
        (read,) = reads(stage.body)
        assert isinstance(read.tensor, Tensor)
        return HostPack(target, self.lowering.buffers[read.tensor], stage.host_packing)

    def _loops(
        self, nest: StageNest, position: int, block: int, inner: list[Node], reset: list[Node]
    ) -> list[Node]:
        nodes = list(reset) if position == min(first_reduce(nest), block) else []
        if position == block:
            return nodes + inner
        leaf = nest.stage.leaves[position]
        body = self._attached(nest, leaf) + self._loops(nest, position + 1, block, inner, reset)
        return nodes + wrap_loop(nest, leaf, guarded(nest.conditions_at(position + 1), body))

    def _attached(self, nest: StageNest, leaf: IterVar) -> list[Node]:
        return [
            n for producer in self.lowering.attached_at(nest.stage, leaf) for n in self.nodes_of(producer)
        ]

    def _check_block(self, nest: StageNest, block: int) -> None:
        stage = nest.stage
        for leaf in stage.leaves[block:]:
            for producer in self.lowering.attached_at(stage, leaf):
                raise TensorizeError(
                    f"{producer.name} is computed at {leaf.name} of {stage.name}, inside the tensorized block"
                )
        inner = nest.inside(block)
        for value, extent in nest.conditions:
            if set(variables(value)) & inner and value not in inner:
                raise TensorizeError(
                    f"{stage.name} is guarded by {format_expr(value)} < {format_expr(extent)} inside the "
                    f"tensorized block; its loops must be whole axes, or the inner loops of splits"
                )

    def _copy_position(self, nest: StageNest) -> int:
        stage = nest.stage
        if stage.tensorized is not None:
            return stage.leaves.index(stage.tensorized[0])
        attached = [i for i, leaf in enumerate(stage.leaves) if self.lowering.attached_at(stage, leaf)]
        return attached[-1] + 1 if attached else 0

    def _block_nodes(self, nest: StageNest, block: int) -> list[Node]:
        intrin, output, inputs = self._unify(nest, block)
        form = "update" if self._accumulates(nest, block) else "compute"
        dims = (output.dims, *(operand.dims for operand in inputs))
        call = Call(intrin, form, output.region, tuple(o.region for o in inputs), dims, stage=nest.stage.name)
        return guarded(self._sum_conditions(nest, block), [call])

    def _sum_conditions(self, nest: StageNest, block: int) -> list[Condition]:
        if reduction(nest.stage.body) is None:
            return []
        inner = nest.inside(block)
        extents = {loop: nest.extents[leaf] for leaf, loop in nest.loops.items() if loop is not None}
        found = []
        for condition in hoist(_uncast(nest.stage.body))[1]:
            below, limit = (self._simplified(side, nest) for side in condition)
            if self._ends_in_zeros(nest, below, limit):
                below = at_zero(below, inner)
            if holds_in_loops((below, limit), extents):
                continue
            if {*variables(below), *variables(limit)} & inner:
                raise TensorizeError(
                    f"{nest.stage.name} is summed up where {format_expr(below)} < {format_expr(limit)}, "
                    f"which depends on loops of the tensorized block; pad in a separate stage in a scratchpad"
                )
            found.append((below, limit))
        return found

    def _simplified(self, expr: Expr, nest: StageNest) -> Expr:
        return simplify(self.lowering.lowered(expr, nest))

    def _ends_in_zeros(self, nest: StageNest, below: Expr, limit: Expr) -> bool:
        """Whether a condition keeps a block within a tensor that the host pads with zeros at its end.

        Then checking the block's first element is enough. Zeros minus a zero point are harmless times zeros,
        as in a matrix that the host makes.
        """
        made = any(is_host_made(self.lowering, read.tensor) for read in reads(nest.stage.body))
        return any(
            limit == Const(size)
            and is_zero_padded(self.lowering, read.tensor, centered=made)
            and self.lowering.tensor_index(index, nest) == below
            for read in reads(nest.stage.body)
            for index, size in zip(read.indices, read.tensor.shape, strict=True)
        )

    def _reset_nodes(self, nest: StageNest, block: int) -> list[Node]:
        if not self._accumulates(nest, block):
            return []
        intrin, output, _ = self._unify(nest, block)
        nodes: list[Node] = [Call(intrin, "reset", output.region, (), (output.dims,), stage=nest.stage.name)]
        nodes = guarded(nest.space_conditions(first_reduce(nest), block), nodes)
        for leaf in reversed(nest.stage.leaves[first_reduce(nest) : block]):
            if leaf.kind == "space":
                nodes = wrap_loop(nest, leaf, nodes)
        return nodes

    def _accumulates(self, nest: StageNest, block: int) -> bool:
        return reduction(nest.stage.body) is not None and (
            first_reduce(nest) < block or bool(self._sum_conditions(nest, block))
        )

    def _unify(self, nest: StageNest, block: int) -> tuple[TensorIntrin, Operand, list[Operand]]:
        stage = nest.stage
        assert stage.tensorized is not None
        intrin = stage.tensorized[1]
        assert isinstance(intrin, TensorIntrin)
        op = intrin.op
        if stage.scope is None:
            raise TensorizeError(
                f"{stage.name} is in DRAM; {intrin.name} writes to a scratchpad: use cache_write first"
            )
        scopes = operand_scopes(intrin, stage.scope.config)
        body, _ = (
            hoist(_uncast(stage.body)) if reduction(stage.body) is not None else (_uncast(stage.body), ())
        )
        loops = block_loops(nest, block)
        axes = [*op.axis, *op.reduce_axis]
        problem: TensorizeError | None = None
        for binding in match(op.body, body):
            try:
                accesses = [self._output_access(nest, op)]
                accesses += [self._input_access(nest, binding, tensor, op.body) for tensor in intrin.inputs]
                for access, tensor in zip(accesses, [op.tensor, *intrin.inputs], strict=True):
                    _check_scope(intrin, access, scopes.get(tensor))
                unified = map_axes(intrin.name, loops, axes, accesses)
                total = reduction(op.body)
                if total is not None:
                    tensors = (op.tensor, *intrin.inputs)
                    check_short_blocks(intrin.name, total.body, unified, accesses, tensors)
            except TensorizeError as error:
                problem = problem or error
                continue
            output, *inputs = unified.operands
            return intrin, output, inputs
        raise problem or TensorizeError(
            f"{stage.name} computes {format_expr(body)}; {intrin.name} computes {format_expr(op.body)}, "
            f"which has another form"
        )

    @staticmethod
    def _output_access(nest: StageNest, pattern: Compute) -> Access:
        indices = tuple(nest.values[axis] for axis in nest.stage.axis)
        label = pattern.name + "".join(f"[{axis.name}]" for axis in pattern.axis)
        return Access(nest.buffer, nest.buffer_extents, indices, pattern.axis, label, output=True)

    def _input_access(
        self, nest: StageNest, binding: dict[Tensor, Read], tensor: Tensor, body: Expr
    ) -> Access:
        read = binding[tensor]
        lowered = self.lowering.lowered(read, nest)
        assert isinstance(lowered, Read)
        assert isinstance(lowered.tensor, Buffer)
        pattern = next(r for r in reads(body) if r.tensor is tensor)
        axes = tuple(i for i in pattern.indices if isinstance(i, IterVar))
        packed = is_zero_padded(self.lowering, read.tensor)
        ends = tuple(
            packed and len(variables(index)) == 1 and bounds(index)[1] == size - 1
            for index, size in zip(read.indices, read.tensor.shape, strict=True)
        )
        buffer_extents = self.lowering.buffer_extents[lowered.tensor]
        return Access(lowered.tensor, buffer_extents, lowered.indices, axes, format_expr(pattern), ends=ends)

    def _alu(self, nest: StageNest, block: int) -> list[Node]:
        stage = nest.stage
        kept = max(
            (i + 1 for i, leaf in enumerate(stage.leaves) if self.lowering.attached_at(stage, leaf)),
            default=0,
        )
        inner: list[Node] = [block_epilogue(self.lowering, self.chains[stage], nest, block)]
        for position in reversed(range(kept, block)):
            inner = wrap_loop(nest, stage.leaves[position], guarded(nest.conditions_at(position + 1), inner))
        return self._loops(nest, 0, kept, [TileEpilogue(tuple(inner))], [])


def _uncast(body: Expr) -> Expr:
    return arithmetic(body.value if isinstance(body, Cast) else body)


def _check_scope(intrin: TensorIntrin, access: Access, expected: str | None) -> None:
    scope = access.buffer.scope
    if expected is not None and (scope is None or scope.name != expected):
        raise TensorizeError(
            f"{access} is in {scope.name if scope is not None else 'DRAM'}; "
            f"{access.label} of {intrin.name} is in {expected}"
        )

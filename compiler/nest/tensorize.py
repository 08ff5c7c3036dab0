"""From a schedule to its tensorized nest: blocks become intrinsic calls, copies become DMA.

A stage with ``tensorize`` has the loops from the named one inward replaced. Stages that copy between DRAM
and a scratchpad become ``dma_copy2d`` of all that they hold inside the innermost loop that something is
computed at.
"""

from __future__ import annotations

from dataclasses import replace

from accel.base.errors import TensorizeError
from accel.compiler.expr.guards import hoist
from accel.compiler.expr.linear import (
    at_zero,
    bounds,
    margin,
    simplify,
    simplify_conditions,
    variables,
)
from accel.compiler.expr.post import Finished, PostOp, ResidualProduct, StoreAdd, StoreRequantize
from accel.compiler.expr.quantized import Parameter
from accel.compiler.expr.scalar import (
    BYTES,
    Binary,
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
from accel.compiler.expr.tensor import Compute, Tensor, reduction, sum_limit
from accel.compiler.expr.window import Range, window_of
from accel.compiler.nest.chain import Chain
from accel.compiler.nest.inplace import alias_chains, is_widened
from accel.compiler.nest.lower import finish, guarded, wrap_loop
from accel.compiler.nest.lowering import Lowering
from accel.compiler.nest.nest import (
    Buffer,
    Call,
    Copy,
    Finish,
    Identity,
    Nest,
    Node,
    Operated,
    Parameters,
    Post,
    Region,
    Store,
    Widen,
)
from accel.compiler.nest.stage_nest import StageNest, first_reduce, inner_region
from accel.compiler.nest.unify import Access, BlockLoop, Operand, check_short_blocks, map_axes, match
from accel.compiler.schedule.loops import Split
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.target.intrin import AluIntrin, CopyIntrin, StoreIntrin, TensorIntrin
from accel.compiler.target.registry import operand_scopes
from accel.image.layout import BlockDiagonal, Interleaved, Preparation


def tensorize(schedule: Schedule) -> Nest:
    """The nest of a schedule with its intrinsics in place.

    Raises:
        ScheduleError: see :func:`accel.compiler.nest.lower.lower`.
        TensorizeError: a block does not unify with its intrinsic, or a stage in a scratchpad is neither
            tensorized nor a copy.
    """
    lowering = Lowering(schedule)
    chains = alias_chains(lowering)
    emitter = _Emitter(lowering, chains)
    body: list[Node] = []
    for stage in lowering.root_stages():
        body.extend(emitter.stage(stage))
    return replace(finish(lowering, body), sum_limits=_sum_limits(lowering), prepared=_prepared(lowering))


def _sum_limits(lowering: Lowering) -> dict[Buffer, int]:
    """How large the sums of products in each buffer can become."""
    found = ((stage, sum_limit(reduction(stage.body))) for stage in lowering.schedule.stages)
    return {lowering.buffers[stage.tensor]: limit for stage, limit in found if limit is not None}


def _prepared(lowering: Lowering) -> dict[Buffer, Preparation]:
    """How the host changes inputs before it packs them."""
    found = (stage.preparation for stage in lowering.schedule.stages)
    return {lowering.buffers[one[0]]: one[1] for one in found if one is not None}


class _Emitter:
    """Walks the stages' loops and writes intrinsic calls where blocks and copies are."""

    def __init__(self, lowering: Lowering, chains: dict[Stage, Chain]) -> None:
        self.lowering = lowering
        self.chains = chains

    def stage(self, stage: Stage) -> list[Node]:
        """All nodes of a stage."""
        nest = self.lowering.nests[stage]
        if stage.host is not None:
            return [self._host(stage)]
        if stage.tensorized is not None and isinstance(stage.tensorized[1], StoreIntrin):
            block = stage.leaves.index(stage.tensorized[0])
            self._check_block(nest, block)
            return self._loops(nest, 0, block, [self._store(nest, block)], [])
        if stage.tensorized is not None and not isinstance(stage.tensorized[1], CopyIntrin):
            block = stage.leaves.index(stage.tensorized[0])
            self._check_block(nest, block)
            if isinstance(stage.tensorized[1], AluIntrin):
                return self._alu(nest, block)
            return self._loops(nest, 0, block, self._block_nodes(nest, block), self._reset_nodes(nest, block))
        block = self._copy_position(nest)
        return self._loops(nest, 0, block, [self._copy(nest, block)], [])

    def _host(self, stage: Stage) -> Node:
        if stage in self.lowering.places or stage.scope is not None:
            raise TensorizeError(
                f"{stage.name} is computed by the host when it packs; it stays in DRAM, outside of all loops"
            )
        target = self.lowering.buffers[stage.tensor]
        if stage.host == "identity":
            return Identity(target)
        assert isinstance(stage.host, BlockDiagonal | Interleaved)
        if isinstance(stage.body, Parameter) and not reads(stage.body):
            assert isinstance(stage.host, Interleaved)
            return Parameters(target, stage.host, stage.body.offset)
        (read,) = reads(stage.body)
        assert isinstance(read.tensor, Tensor)
        return Widen(target, self.lowering.buffers[read.tensor], stage.host)

    def _loops(
        self, nest: StageNest, position: int, block: int, inner: list[Node], reset: list[Node]
    ) -> list[Node]:
        """The loops of a stage outside its block, with the stages attached there."""
        nodes = list(reset) if position == min(first_reduce(nest), block) else []
        if position == block:
            return nodes + inner
        leaf = nest.stage.leaves[position]
        body = self._attached(nest, leaf) + self._loops(nest, position + 1, block, inner, reset)
        return nodes + wrap_loop(nest, leaf, guarded(nest.conditions_at(position + 1), body))

    def _attached(self, nest: StageNest, leaf: IterVar) -> list[Node]:
        return [n for producer in self.lowering.attached_at(nest.stage, leaf) for n in self.stage(producer)]

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

    # --- copies ----------------------------------------------------------------------------------

    def _copy_position(self, nest: StageNest) -> int:
        """How many outer loops of a copy stage stay loops."""
        stage = nest.stage
        if stage.tensorized is not None:
            return stage.leaves.index(stage.tensorized[0])
        attached = [i for i, leaf in enumerate(stage.leaves) if self.lowering.attached_at(stage, leaf)]
        return attached[-1] + 1 if attached else 0

    def _copy(self, nest: StageNest, block: int) -> Node:
        stage = nest.stage
        where = stage.scope.name if stage.scope is not None else "DRAM"
        window = window_of(stage.axis, stage.body)
        if window is None:
            raise TensorizeError(
                f"{stage.name} in {where} is neither tensorized nor a plain copy; tensorize it, "
                f"or compute it in acc_buffer (cache_write) and tensorize that with the machine's alu"
            )
        tensor = window.read.tensor
        assert isinstance(tensor, Tensor)
        source = self.lowering.buffers[tensor]
        target = inner_region(nest, block)
        if target is None:
            raise TensorizeError(f"the inner loops of {stage.name} cover no box; it cannot be copied as one")
        if (target.buffer.scope is None) == (source.scope is None):
            raise TensorizeError(
                f"{stage.name} copies from {source.scope or 'DRAM'} to {where}; "
                f"dma_copy2d goes between DRAM and a scratchpad"
            )
        _check_dtypes(stage, source, target.buffer, window.zero)
        inner = nest.inside(block)
        first = [at_zero(nest.index(d), inner) for d in range(len(target.ranges))]
        ranges, padding = window.source(first, [r.extent for r in target.ranges])
        starts = self.lowering.starts[tensor]
        relative = tuple(
            Range(simplify(r.start - start), r.extent) for r, start in zip(ranges, starts, strict=True)
        )
        region = Region(source, relative, self.lowering.held[source])
        steps = window.steps if max(window.steps) > 1 else ()
        return Copy(target, region, padding, steps, window.zero or 0, stage=stage.name)

    # --- the store unit ----------------------------------------------------------------------------

    def _store(self, nest: StageNest, block: int) -> Node:
        """The post-operators of a tile, which the store unit carries out on the way to DRAM."""
        stage = nest.stage
        body = stage.body.value if isinstance(stage.body, Cast) else stage.body
        ops = body.ops if isinstance(body, Finished) else ()
        if not isinstance(body, Finished) or not ops or not isinstance(ops[0], StoreRequantize):
            raise TensorizeError(
                f"{stage.name} computes {format_expr(body)}; the store unit takes what pack_parameters makes"
            )
        root = body.value
        if not isinstance(root, Read) or root.indices != stage.axis or stage.scope is not None:
            raise TensorizeError(
                f"{stage.name} finishes {format_expr(root)}; the store unit goes from sums in acc_buffer to "
                f"DRAM, element by element"
            )
        target = inner_region(nest, block)
        if target is None:
            raise TensorizeError(
                f"the inner loops of {stage.name} cover no box; the store unit finishes boxes"
            )
        source = self._same_box(nest, block, root)
        if source.buffer.scope is None or source.buffer.scope.name != "acc_buffer":
            raise TensorizeError(
                f"{stage.name} reads {source.buffer.name} from {source.buffer.scope or 'DRAM'}; "
                f"the store unit finishes what acc_buffer holds"
            )
        first, *rest = ops
        parameters, d = self._parameters(nest, block, first)
        placed = [Operated(self._lowered_op(first, nest), parameters, (d, None))]
        for op in rest:
            assert isinstance(op, StoreAdd)
            if not isinstance(op.operand, Read) or op.operand.indices != stage.axis:
                raise TensorizeError(
                    f"{stage.name} adds {format_expr(op.operand)}; the store unit adds element by element"
                )
            residual = self._same_box(nest, block, op.operand)
            if residual.buffer.scope is not None:
                raise TensorizeError(
                    f"{stage.name} adds {residual.buffer.name} from {residual.buffer.scope}; "
                    f"the store unit loads what it adds from DRAM itself"
                )
            placed.append(Operated(self._lowered_op(op, nest), residual))
        return Store(target, source, tuple(placed), stage=stage.name)

    def _same_box(self, nest: StageNest, block: int, read: Read) -> Region:
        """What of another tensor lies at the places of a tile."""
        tensor = read.tensor
        assert isinstance(tensor, Tensor)
        target = inner_region(nest, block)
        assert target is not None
        inner = nest.inside(block)
        starts = self.lowering.starts[tensor]
        ranges = tuple(
            Range(simplify(Binary("-", at_zero(nest.index(d), inner), start)), r.extent)
            for d, (r, start) in enumerate(zip(target.ranges, starts, strict=True))
        )
        buffer = self.lowering.buffers[tensor]
        return Region(buffer, ranges, self.lowering.held[buffer])

    def _parameters(self, nest: StageNest, block: int, op: PostOp) -> tuple[Region, int]:
        """The parameters of a tile's channels, and the dimension of the tile that these are."""
        stage = nest.stage
        assert isinstance(op, StoreRequantize)
        read = op.bias
        assert isinstance(read, Read)
        assert isinstance(read.tensor, Tensor)
        channel = read.indices[0]
        buffer = self.lowering.buffers[read.tensor]
        if buffer.scope is None or buffer.scope.name != "par_buffer":
            raise TensorizeError(
                f"{stage.name} reads {buffer.name} from {buffer.scope or 'DRAM'}; "
                f"the store unit reads par_buffer: use cache_read"
            )
        target = inner_region(nest, block)
        assert target is not None
        start = self.lowering.starts[read.tensor][0]
        axis, alike = channel, None
        if isinstance(channel, Binary) and channel.op == "%":
            axis, alike = channel.a, channel.b
        if axis not in stage.axis:
            raise TensorizeError(
                f"{stage.name} has parameters of channel {format_expr(channel)}; one of its axes is needed"
            )
        assert isinstance(axis, IterVar)
        d = stage.axis.index(axis)
        first = at_zero(nest.index(d), nest.inside(block))
        if alike is not None:
            width = buffer.scope.element[0]
            if alike != Const(width) or simplify(first % width) != Const(0):
                raise TensorizeError(
                    f"{stage.name} has parameters of channel {format_expr(channel)}, of tiles that start at "
                    f"{format_expr(first)}; whole elements of {width} channels are needed"
                )
            ranges = (Range(Const(0), Const(width)), Range(Const(0), Const(2)))
            return Region(buffer, ranges, self.lowering.held[buffer]), d
        start = simplify(Binary("-", first, start))
        ranges = (Range(start, target.ranges[d].extent), Range(Const(0), Const(2)))
        return Region(buffer, ranges, self.lowering.held[buffer]), d

    # --- declared intrinsics -----------------------------------------------------------------------

    def _block_nodes(self, nest: StageNest, block: int) -> list[Node]:
        intrin, output, inputs = self._unified(nest, block)
        form = "update" if self._accumulates(nest, block) else "compute"
        dims = (output.dims, *(operand.dims for operand in inputs))
        call = Call(intrin, form, output.region, tuple(o.region for o in inputs), dims, stage=nest.stage.name)
        return guarded(self._sum_conditions(nest, block), [call])

    def _sum_conditions(self, nest: StageNest, block: int) -> list[Condition]:
        """When a block adds to its sum: where no factor is zero for sure."""
        if reduction(nest.stage.body) is None:
            return []
        inner = nest.inside(block)
        found = []
        for condition in hoist(_uncast(nest.stage.body))[1]:
            below, limit = (self._simplified(side, nest) for side in condition)
            if self._is_filled_up(nest, below, limit):
                below = at_zero(below, inner)
            if bounds(margin((below, limit)).expr())[0] >= 0:
                continue
            if {*variables(below), *variables(limit)} & inner:
                raise TensorizeError(
                    f"{nest.stage.name} is summed up where {format_expr(below)} < {format_expr(limit)}, "
                    f"which loops of the tensorized block decide; pad by a stage of its own in a scratchpad"
                )
            found.append((below, limit))
        return found

    def _simplified(self, expr: Expr, nest: StageNest) -> Expr:
        return simplify(self.lowering.lowered(expr, nest))

    def _is_filled_up(self, nest: StageNest, below: Expr, limit: Expr) -> bool:
        """Whether a condition keeps a block within a tensor behind whose end the host packs zeros, so that
        looking at the block's first element is enough. Zeros less a zero point do where they are multiplied
        by zeros: in a matrix that the host makes, no row that counts has anything else there."""
        made = any(self._is_made(read.tensor) for read in reads(nest.stage.body))
        return any(
            limit == Const(size)
            and self._is_packed(read.tensor, centered=made)
            and self.lowering.tensor_index(index, nest) == below
            for read in reads(nest.stage.body)
            for index, size in zip(read.indices, read.tensor.shape, strict=True)
        )

    def _reset_nodes(self, nest: StageNest, block: int) -> list[Node]:
        """The reset form for all that the reduce loops outside the block sum up."""
        if not self._accumulates(nest, block):
            return []
        intrin, output, _ = self._unified(nest, block)
        nodes: list[Node] = [Call(intrin, "reset", output.region, (), (output.dims,), stage=nest.stage.name)]
        nodes = guarded(nest.space_conditions(first_reduce(nest), block), nodes)
        for leaf in reversed(nest.stage.leaves[first_reduce(nest) : block]):
            if leaf.kind == "space":
                nodes = wrap_loop(nest, leaf, nodes)
        return nodes

    def _accumulates(self, nest: StageNest, block: int) -> bool:
        """Whether sums must be set to zero before their block adds to them."""
        return reduction(nest.stage.body) is not None and (
            first_reduce(nest) < block or bool(self._sum_conditions(nest, block))
        )

    def _unified(self, nest: StageNest, block: int) -> tuple[TensorIntrin, Operand, list[Operand]]:
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
        return Access(nest.buffer, nest.held, indices, pattern.axis, label, output=True)

    def _input_access(
        self, nest: StageNest, binding: dict[Tensor, Read], tensor: Tensor, body: Expr
    ) -> Access:
        read = binding[tensor]
        lowered = self.lowering.lowered(read, nest)
        assert isinstance(lowered, Read)
        assert isinstance(lowered.tensor, Buffer)
        pattern = next(r for r in reads(body) if r.tensor is tensor)
        axes = tuple(i for i in pattern.indices if isinstance(i, IterVar))
        packed = self._is_packed(read.tensor)
        ends = tuple(
            packed and len(variables(index)) == 1 and bounds(index)[1] == size - 1
            for index, size in zip(read.indices, read.tensor.shape, strict=True)
        )
        held = self.lowering.held[lowered.tensor]
        return Access(lowered.tensor, held, lowered.indices, axes, format_expr(pattern), ends=ends)

    def _is_packed(self, tensor: object, *, centered: bool = False) -> bool:
        """Whether it is an input, or a copy of one: the host fills its last blocks up with zeros.

        Args:
            tensor: an input or a stage's.
            centered: whether copies count from which a zero point is subtracted.
        """
        if tensor in self.lowering.schedule.inputs:
            return True
        assert isinstance(tensor, Tensor)
        stage = self.lowering.schedule[tensor]
        if stage.host is not None:
            return True
        window = window_of(stage.axis, stage.body)
        if window is None or (window.zero and not centered):
            return False
        return self._is_packed(window.read.tensor, centered=centered)

    def _is_made(self, tensor: object) -> bool:
        """Whether the host makes it: a matrix of blocks on the diagonal, or a copy of one."""
        if tensor in self.lowering.schedule.inputs:
            return False
        assert isinstance(tensor, Tensor)
        stage = self.lowering.schedule[tensor]
        window = window_of(stage.axis, stage.body)
        return stage.host is not None or (window is not None and self._is_made(window.read.tensor))

    # --- the ALU -----------------------------------------------------------------------------------

    def _alu(self, nest: StageNest, block: int) -> list[Node]:
        """The chain's post-operators, inside the loops that something is computed at."""
        stage = nest.stage
        kept = max(
            (i + 1 for i, leaf in enumerate(stage.leaves) if self.lowering.attached_at(stage, leaf)),
            default=0,
        )
        inner: list[Node] = [self._finish(nest, block)]
        for position in reversed(range(kept, block)):
            inner = wrap_loop(nest, stage.leaves[position], guarded(nest.conditions_at(position + 1), inner))
        return self._loops(nest, 0, kept, [Post(tuple(inner))], [])

    def _finish(self, nest: StageNest, block: int) -> Finish:
        stage = nest.stage
        assert stage.tensorized is not None
        intrin = stage.tensorized[1]
        assert isinstance(intrin, AluIntrin)
        rows, columns = IterVar("i", intrin.block[0]), IterVar("j", intrin.block[1])
        loops = block_loops(nest, block)
        place = self.lowering.lowered(stage.tensor[stage.axis], nest)
        assert isinstance(place, Read)
        held = self.lowering.held[nest.buffer]
        target = Access(nest.buffer, held, place.indices, (rows, columns), "acc[i][j]", output=True)
        accesses = [target]
        ops = [self._lowered_op(op, nest) for op in self.chains[stage].ops]
        elements = [next(iter(op.elements()), None) for op in self.chains[stage].ops]
        units = [self._unit(nest, op, intrin.block) for op in self.chains[stage].ops]
        accesses += [
            self._operand_access(nest, e, (rows, columns), unit)
            for e, unit in zip(elements, units, strict=True)
            if e is not None
        ]
        block_of, *others = map_axes(intrin.name, loops, (rows, columns), accesses).operands
        operands = iter(others)
        placed = []
        for op, element, unit in zip(ops, elements, units, strict=True):
            operand = next(operands) if element is not None else None
            placed.append(
                Operated(op) if operand is None else Operated(op, operand.region, operand.dims, unit)
            )
        return Finish(intrin, block_of.region, block_of.dims, tuple(placed), stage=stage.name)

    def _lowered_op(self, op: PostOp, nest: StageNest) -> PostOp:
        """A post-operator in terms of buffers and loop variables."""
        return op.rewritten(lambda part: simplify_conditions(self.lowering.lowered(part, nest)))

    def _unit(self, nest: StageNest, op: PostOp, block: tuple[int, int]) -> Region | None:
        """The identity matrix that a residual is multiplied by, if it is."""
        if not isinstance(op, ResidualProduct):
            return None
        stage = nest.stage
        assert isinstance(op.unit, Read)
        matrix = op.unit.tensor
        assert isinstance(matrix, Tensor)
        buffer, width = self.lowering.buffers[matrix], block[1]
        scope = buffer.scope
        if scope is None or scope.name != "wgt_buffer" or not self._is_made(matrix):
            raise TensorizeError(
                f"{stage.name} multiplies by {matrix.name} in {scope or 'DRAM'}; "
                f"the GEMM core reads wgt_buffer: use cache_read"
            )
        if buffer.shape != (width, width) or scope.config.block_in != width:
            raise TensorizeError(
                f"{stage.name} multiplies by {matrix.name} of {list(buffer.shape)}; a GEMM core with "
                f"blocks of {scope.config.block_in} x {width} adds by one of that size, if they are square"
            )
        whole = tuple(Range(Const(0), Const(width)) for _ in range(2))
        return Region(buffer, whole, self.lowering.held[buffer])

    def _operand_access(
        self, nest: StageNest, element: Read, axes: tuple[IterVar, IterVar], unit: Region | None
    ) -> Access:
        """What is read besides the accumulator that is changed: by the GEMM core if there is a ``unit``."""
        stage = nest.stage
        lowered = self.lowering.lowered(element, nest)
        assert isinstance(lowered, Read)
        assert isinstance(lowered.tensor, Buffer)
        assert isinstance(element.tensor, Tensor)
        held = self.lowering.held[lowered.tensor]
        if unit is not None:
            scope = lowered.tensor.scope
            if scope is None or scope.name != "inp_buffer":
                raise TensorizeError(
                    f"{stage.name} multiplies {format_expr(lowered)} from {scope or 'DRAM'}; the GEMM core "
                    f"reads inp_buffer: use cache_read"
                )
            return Access(lowered.tensor, held, lowered.indices, axes, "inp[i][j]")
        if lowered.tensor.scope is None:
            raise TensorizeError(
                f"{stage.name} reads {format_expr(lowered)} from DRAM; "
                f"the ALU reads acc_buffer: use cache_read"
            )
        if not is_widened(self.lowering, element.tensor):
            name = lowered.tensor.name
            raise TensorizeError(
                f"{stage.name} reads {format_expr(lowered)} from {lowered.tensor.scope}, where sums "
                f"are not cut to int8; store {name} and load it again (cache_read), or make it int32"
            )
        return Access(lowered.tensor, held, lowered.indices, axes, "acc[i][j]")


def _uncast(body: Expr) -> Expr:
    """What is computed, as arithmetic."""
    return arithmetic(body.value if isinstance(body, Cast) else body)


def block_loops(nest: StageNest, block: int) -> list[BlockLoop]:
    """The loops of a stage's tensorized block."""
    stage = nest.stage
    widths = {r.inner: r.factor for r in stage.relations if isinstance(r, Split)}
    roots = {*stage.axis, *stage.reduce_axis}
    found = []
    for leaf in stage.leaves[block:]:
        var = nest.loops[leaf]
        assert var is not None
        found.append(BlockLoop(var, nest.extents[leaf], widths.get(leaf, leaf.extent), leaf in roots))
    return found


def _check_scope(intrin: TensorIntrin, access: Access, expected: str | None) -> None:
    scope = access.buffer.scope
    if expected is not None and (scope is None or scope.name != expected):
        raise TensorizeError(
            f"{access} is in {scope.name if scope is not None else 'DRAM'}; "
            f"{access.label} of {intrin.name} is in {expected}"
        )


def _check_dtypes(stage: Stage, source: Buffer, target: Buffer, zero: int | None) -> None:
    """DMA moves bytes to inp and wgt, int32 or bytes to acc, int32 to par, and the low bytes of acc to DRAM.
    Where ``post=1`` it subtracts a zero point, and takes uint8."""
    if source.scope is not None:
        if source.scope.name != "acc_buffer":
            raise TensorizeError(
                f"{stage.name} copies {source.name} from {source.scope.name} to DRAM; "
                f"STORE reads acc_buffer only"
            )
        if target.dtype not in BYTES:
            raise TensorizeError(
                f"{stage.name} copies {source.name} to DRAM as {target.dtype}; STORE writes the low bytes of "
                f"acc_buffer as int8: give the output dtype='int8', or clip it"
            )
        return
    scope = target.scope
    assert scope is not None
    if (zero is not None or source.dtype == "uint8") and not scope.config.post:
        what = f"the zero point {zero}" if zero else "uint8 values"
        raise TensorizeError(
            f"{stage.name} loads {source.name} with {what}; configuration {scope.config.name!r} has post=0, "
            f"and only machines with post=1, as 'vta-int8', do that"
        )
    if scope.name == "inp_buffer" and source.dtype == "uint8" and zero is None:
        raise TensorizeError(
            f"{stage.name} copies {source.name}, which is uint8; inp_buffer holds 9 bits, signed: subtract "
            f"its zero point and cast to int16"
        )
    if zero is not None and scope.name != "inp_buffer":
        raise TensorizeError(
            f"{stage.name} copies {source.name} less {zero} to {scope.name}; LOAD subtracts zero points on "
            f"the way to inp_buffer only"
        )
    taken = {"wgt_buffer": ("int8",), "inp_buffer": BYTES, "par_buffer": ("int32",)}.get(scope.name)
    if taken is not None and source.dtype not in taken:
        raise TensorizeError(
            f"{stage.name} copies {source.name}, which is {source.dtype}; {scope.name} holds {taken[0]}"
        )

"""Schedules: how the loops of a computation are transformed, without changing what it computes.

Every operator's effect is a change of the loop nest, shown in its docstring, and one entry in
``Schedule.steps``, from which the schedule can be built again (``accel.compiler.schedule.records``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from accel.base.arguments import plain_integer
from accel.base.errors import ScheduleError, nearest
from accel.compiler.expr.linear import Linear, bounds, linear, simplify
from accel.compiler.expr.post import Finished, Residual, ResidualProduct, taken_apart
from accel.compiler.expr.quantized import Parameter
from accel.compiler.expr.scalar import (
    INT32_MAX,
    INT32_MIN,
    Cast,
    Expr,
    IterVar,
    Read,
    Sum,
    format_expr,
    reads,
    rewrite,
    substitute,
)
from accel.compiler.expr.tensor import (
    Compute,
    Placeholder,
    Tensor,
    check_name,
    producers,
    reduction,
    sum_limit,
)
from accel.compiler.expr.window import window_of
from accel.compiler.schedule.groups import find_groups, grouped_weight
from accel.compiler.schedule.identity import product_body, read_along, unit_element
from accel.compiler.schedule.loops import Fuse, Loops, Split
from accel.compiler.target.finish import simplified
from accel.compiler.target.intrin import Intrinsic, check_intrinsic
from accel.compiler.target.scope import Scope, check_scope
from accel.compiler.target.store import NO_BIAS, store_path
from accel.image.layout import BlockDiagonal, Interleaved, Preparation

Step = dict[str, Any]
"""One operator call as plain data: ``op`` and its arguments, axes and stages by name."""


@dataclass(eq=False)
class Stage(Loops):
    """The loop nest that computes one tensor; reached as ``schedule[tensor]``.

    Attributes:
        tensor: what it computes.
        axis: a variable per dimension of the tensor.
        body: the element's value, in terms of ``axis`` and the reduce axes.
        leaves: the loops, outermost first.
        relations: splits and fuses, in order of their making.
        scope: the scratchpad that holds the result, or None for DRAM.
        attach: the stage and loop inside which it is computed; None: outside of all loops, or for a copy
            where its reader's intrinsic wants it.
        rooted: outside of all loops in any case.
        keep: the stage and loop throughout which it keeps what is computed inside; None: only as long as the
            loop at which it is computed goes on, or if ``keeps``, throughout.
        keeps: whether it keeps anything.
        ahead: whether there is room for what the next iteration of that loop keeps.
        starts_after: the stage whose first copy is asked for before the first one of this stage is.
        host: how the host computes it, when it packs an input or as a constant; None: the machine does.
        preparation: an input that the host changes before, and how.
    """

    schedule: Schedule
    tensor: Tensor
    axis: tuple[IterVar, ...]
    body: Expr
    leaves: list[IterVar]
    relations: list[Split | Fuse] = field(default_factory=list)
    scope: Scope | None = None
    attach: tuple[Stage, IterVar] | None = None
    rooted: bool = False
    keep: tuple[Stage, IterVar] | None = None
    keeps: bool = False
    ahead: bool = False
    starts_after: Stage | None = None
    host: BlockDiagonal | Interleaved | Literal["identity"] | None = None
    preparation: tuple[Tensor, Preparation] | None = None
    tensorized: tuple[IterVar, Intrinsic] | None = None
    unrolled: set[IterVar] = field(default_factory=set)
    threads: set[IterVar] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def op(self) -> Stage:
        """Itself, so that ``s[C].op.axis`` reads as in TVM."""
        return self

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        found = reduction(self.body)
        return found.axes if found is not None else ()

    @property
    def copies(self) -> bool:
        """Whether it computes nothing, but moves, pads or skips elements."""
        return window_of(self.axis, self.body) is not None

    def __repr__(self) -> str:
        return f"Stage({self.name}: {', '.join(v.name for v in self.leaves)})"

    # --- operators -------------------------------------------------------------------------------

    def compute_at(self, consumer: Stage | Tensor, axis: IterVar | str) -> None:
        """Compute, inside a loop of ``consumer``, just what that loop's body needs.

            for y in range(64):         for yo in range(8):
                B[y] = A[y]                 for y in range(8):
            for yo in range(8):                 B[y] = A[yo*8+y]
                for yi in range(8):         for yi in range(8):
                    C[yo*8+yi] = B[yo*8+yi]     C[yo*8+yi] = B[yi]

        Raises:
            ScheduleError: the axis is no loop of the consumer, or the consumer does not need this stage.
        """
        stage = self.schedule[consumer]
        if stage is self or not self.schedule.depends(stage, self.tensor):
            raise ScheduleError(f"{self.name} cannot be computed at {stage.name}, which does not need it")
        if self.tensor in self.schedule.outputs:
            raise ScheduleError(f"{self.name} is an output; it is computed outside of all loops")
        loop = stage._leaf(axis)
        self.attach, self.rooted = (stage, loop), False
        self._record("compute_at", consumer=stage.name, axis=loop.name)

    def compute_root(self) -> None:
        """Compute all of the tensor before the loops that need it.

        for yo in range(8):         for y in range(64):
            for y in range(8):          B[y] = A[y]
                B[y] = A[yo*8+y]    for yo in range(8):
            for yi in range(8):         for yi in range(8):
                C[yo*8+yi] = B[yi]          C[yo*8+yi] = B[yo*8+yi]
        """
        self.attach, self.rooted = None, True
        self._record("compute_root")

    def keep_at(self, consumer: Stage | Tensor, axis: IterVar | str, *, ahead: bool = False) -> None:
        """Keep what is copied to a scratchpad as long as a loop of ``consumer`` goes on, which is around that
        of :meth:`compute_at`.

            for y in range(64):         for y in range(64):
                for k in range(4):          for k in range(4):
                    B[j] = A[k*8+j]             B[k][j] = A[k*8+j]      only for y = 0
                    C[y] += B[j]                C[y] += B[k][j]

        There is room for all that the loops inside bring. What is there already is not copied again, and
        virtual threads that need the same share it.

        Args:
            consumer: the stage that the loop is of.
            axis: the loop.
            ahead: whether there is as much room again, in which every other iteration has its own, across the
                loops around it: then what the next one needs can be copied while this one goes on.

        Raises:
            ScheduleError: it is no copy into a scratchpad, or the axis is no loop of the consumer.
        """
        stage = self.schedule[consumer]
        self._check_keeps()
        loop = stage._leaf(axis)
        self.keep, self.keeps, self.ahead = (stage, loop), True, ahead
        self._record("keep_at", consumer=stage.name, axis=loop.name, **({"ahead": True} if ahead else {}))

    def keep_root(self) -> None:
        """Keep all that is ever copied to a scratchpad, as :meth:`keep_at` outside of all loops.

        Raises:
            ScheduleError: it is no copy into a scratchpad.
        """
        self._check_keeps()
        self.keep, self.keeps, self.ahead = None, True, False
        self._record("keep_root")

    def _check_keeps(self) -> None:
        if self.scope is None or not self.copies:
            raise ScheduleError(f"{self.name} is no copy into a scratchpad; only such keep what they copy")

    def start_after(self, other: Stage | Tensor) -> None:
        """Hold the first copy into inp_buffer or wgt_buffer back till ``other``'s, into acc_buffer, has been
        asked for.

        Loops do not change. The compute unit can ask for what it loads itself only when it comes to it; the
        load unit's requests, which run ahead, would all be served before.

        Raises:
            ScheduleError: one of the two is no copy into such a scratchpad.
        """
        stage = self.schedule[other]
        for one, names in ((self, ("inp_buffer", "wgt_buffer")), (stage, ("acc_buffer",))):
            if one.scope is None or one.scope.name not in names or not one.copies:
                raise ScheduleError(
                    f"{one.name} is no copy into {' or '.join(names)}; start_after orders copies of the load "
                    f"unit behind those of the compute unit"
                )
        self.starts_after = stage
        self._record("start_after", other=stage.name)

    def compute_inline(self) -> None:
        """Compute each element where it is read, and nowhere else.

            for y in range(64):         for y in range(64):
                B[y] = A[y] + 1             C[y] = (A[y] + 1) * 2
            for y in range(64):
                C[y] = B[y] * 2

        Raises:
            ScheduleError: it is an output, a sum, or loops of it have been named by other operators.
        """
        schedule = self.schedule
        if self.tensor in schedule.outputs:
            raise ScheduleError(f"{self.name} is an output; only what others read can be inlined")
        if reduction(self.body) is not None:
            raise ScheduleError(f"{self.name} is a sum; its elements cannot be computed where they are read")
        for other in schedule.stages:
            if other.attach is not None and other.attach[0] is self:
                raise ScheduleError(
                    f"{other.name} is computed at a loop of {self.name}, which has none if it is inlined"
                )

        def inlined(node: Expr) -> Expr | None:
            if isinstance(node, Read) and node.tensor is self.tensor:
                return substitute(self.body, dict(zip(self.axis, node.indices, strict=True)))
            return None

        for reader in schedule.readers(self.tensor):
            reader.body = rewrite(reader.body, inlined)
        schedule.stages.remove(self)
        self._record("compute_inline")

    def merge_groups(self, axis: IterVar | str, count: int, *, name: str | None = None) -> Tensor:
        """Sum up ``count`` neighbouring groups at once, with zeros in the weights of all but one's own.

            for o in range(64):                     for o in range(64):
                for c in range(1):                      for c in range(16):
                    S[o] += A[o+c] * W[o][c]                S[o] += A[o//16*16+c] * W_wide[o][c]

        The host computes the wide weights when it packs W, ``W_wide[o][c] = W[o][c-o%16]`` for c within the
        group and else 0; they stay in DRAM and outside of all loops.

        Args:
            axis: the reduce axis within a group.
            count: groups that are merged.
            name: of the wide weights; the weights' with ``_wide`` behind it if not given.

        Raises:
            ScheduleError: the stage does not sum up groups along the axis, its weights are no input, or there
                are not so many groups; or :meth:`split` would refuse the axis.
        """
        schedule = self.schedule
        loop = self._free_leaf(axis)
        groups = find_groups(self.name, self.body, loop)
        weights = groups.weights.tensor
        if weights not in schedule.inputs or len(schedule.readers(weights)) > 1:
            raise ScheduleError(
                f"{weights.name} is no input that {self.name} alone reads; the host widens only such: "
                f"merge groups before cache_read"
            )
        merged = plain_integer(count)
        if merged is None or not 1 <= merged <= groups.number:
            raise ScheduleError(
                f"the number of groups to merge is {count!r}; {self.name} has {groups.number}"
            )
        count = merged
        assert isinstance(weights, Tensor)
        inputs = IterVar(loop.name, count * groups.columns, "reduce")
        rest = (IterVar(f"i{d}", weights.shape[d]) for d in range(2, len(weights.shape)))
        axes = (
            IterVar(groups.output.name, groups.output.extent),
            IterVar(loop.name, inputs.extent),
            *rest,
        )
        element = grouped_weight(weights, groups.rows, count, axes)
        shape = tuple(v.extent for v in axes)
        label = schedule._fresh(name or f"{weights.name}_wide")
        wide = Compute(label, shape, weights.dtype, axes, element).tensor
        body = groups.merged(self.body, wide, inputs, count)
        self.body = rewrite(body, lambda n: _with_axis(n, loop, inputs))
        self.leaves[self.leaves.index(loop)] = inputs
        how = BlockDiagonal(rows=groups.rows, merged=count)
        schedule._insert(Stage(schedule, wide, axes, element, list(axes), rooted=True, host=how), self)
        self._record("merge_groups", axis=loop.name, count=count, name=wide.name)
        return wide

    def multiply_identity(
        self,
        axis: IterVar | str,
        block: int,
        *,
        name: str | None = None,
        unit: Tensor | str | None = None,
    ) -> Tensor:
        """Make a sum one of products with an identity matrix, which a GEMM core can do; or a copy.

            for o in range(64):                     for o in range(64):
                for d in range(9):                      for c in range(16):
                    S[o] += A[o][d]                         for d in range(9):
                                                                S[o] += A[o//16*16+c][d] * identity[o%16][c]

        The matrix is a constant in DRAM, outside of all loops.

        Args:
            axis: along which elements become blocks.
            block: rows and columns of the matrix.
            name: of the matrix; ``identity`` if not given.
            unit: a matrix that another stage is multiplied by already; a new one if not given.

        Raises:
            ScheduleError: the stage is no sum or copy of elements of one tensor that has the axis as an
                index, or the axis is not as long as a block; or :meth:`split` would refuse the axis; or
                ``unit`` is no identity matrix of that size.
        """
        schedule = self.schedule
        loop = self._free_leaf(axis)
        read_along(self.name, self.body, loop)
        rows = plain_integer(block)
        if rows is None or not 1 <= rows <= loop.extent:
            raise ScheduleError(
                f"the identity matrix for {self.name} has {block!r} rows; along {loop.name} it has 1 to "
                f"{loop.extent}"
            )
        shared = None if unit is None else schedule[unit]
        if shared is not None and (shared.host != "identity" or shared.tensor.shape != (rows, rows)):
            raise ScheduleError(f"{shared.name} is no identity matrix of {rows} rows")
        matrix = schedule._identity(rows, name, self) if shared is None else shared.tensor
        column = IterVar(self._fresh("c"), rows, "reduce")
        self.body = product_body(self.body, loop, column, matrix)
        reduced = (n for n, leaf in enumerate(self.leaves) if leaf.kind == "reduce")
        self.leaves.insert(next(reduced, len(self.leaves)), column)
        known = {} if shared is None else {"unit": matrix.name}
        self._record("multiply_identity", axis=loop.name, block=rows, name=matrix.name, **known)
        return matrix

    def add_product(
        self, tensor: Tensor | str, axis: IterVar | str, block: int, *, name: str | None = None
    ) -> Tensor:
        """Have the GEMM core add a residual to finished sums: as a product with an identity matrix.

            for o in range(64):                     for o in range(64):
                C[o] = (S[o] >> 8) + R[o]               C[o] = (S[o] >> 8) + R[o]*identity[o%16][o%16]

        It then comes from ``inp_buffer``, through the load unit. The matrix is a constant in DRAM, outside of
        all loops.

        Args:
            tensor: what is added.
            axis: along which elements become blocks.
            block: rows and columns of the matrix.
            name: of the matrix; ``identity`` if not given.

        Raises:
            ScheduleError: the stage does not add such a tensor to finished sums, at its own axes; or the size
                is no positive integer.
        """
        schedule = self.schedule
        loop = self._free_leaf(axis)
        rows = plain_integer(block)
        if rows is None or rows < 1:
            raise ScheduleError(f"the identity matrix for {self.name} has {block!r} rows; it has at least 1")
        label = tensor if isinstance(tensor, str) else tensor.name
        cast = self.body if isinstance(self.body, Cast) else None
        apart = taken_apart(self.body if cast is None else cast.value)
        every = () if apart is None else apart[1]
        added = [
            one
            for one in every
            if type(one) is Residual
            and isinstance(one.operand, Read)
            and one.operand.tensor.name == label
            and one.operand.indices == self.axis
        ]
        if apart is None or len(added) != 1:
            raise ScheduleError(
                f"{self.name} is {format_expr(self.body)}; it does not add {label} to finished sums"
            )
        unit = schedule._identity(rows, name, self)
        place = simplify(loop % rows)
        product = ResidualProduct(added[0].operand, unit[place, place])
        body: Expr = Finished(apart[0], tuple(product if one is added[0] else one for one in every))
        self.body = body if cast is None else Cast(body, cast.to)
        self._record("add_product", tensor=label, axis=loop.name, block=rows, name=unit.name)
        return unit

    def pack_parameters(self, *, block: int | None = None, name: str | None = None) -> Tensor:
        """Have the store unit of a machine with ``post=1`` finish the sums that the stage reads, with
        parameters that the host packs: for each channel a bias and a scale.

            for o in range(64):                     for o in range(64):
                C[o] = requantized(S[o] + bias[o])      C[o] = requantize(S[o], par[o][0], par[o][1])

        The parameters stay in DRAM and outside of all loops; ``cache_read`` brings them into ``par_buffer``.

        Args:
            block: channels, if those of all others are the same: without a bias, and with one scale for all.
                Channel ``o`` then takes the parameters ``o % block``.
            name: of the parameters; ``par`` if not given.

        Raises:
            ScheduleError: what follows the sums is no operator's epilogue, or the store unit cannot do it
                exactly; or the bias is no input; or there is a block for channels that differ, or of more
                than there are.
        """
        schedule = self.schedule
        cast = self.body if isinstance(self.body, Cast) else None
        finished = self.body if cast is None else cast.value
        apart = taken_apart(finished)
        if apart is None:
            raise ScheduleError(
                f"{self.name} is {format_expr(finished)}; it must be what an operator does to sums"
            )
        root, ops = apart
        tensor = root.tensor
        sums = schedule[tensor] if isinstance(tensor, Tensor) and tensor not in schedule.inputs else None
        total = None if sums is None else reduction(sums.body)
        path = store_path(simplified(ops), sum_limit(total))
        if total is None or path is None:
            raise ScheduleError(
                f"{self.name} is {format_expr(finished)}; the store unit cannot do that exactly: use the alu"
            )
        bias = None if path.bias is None else path.bias.tensor
        if path.bias is not None and (bias not in schedule.inputs or len(path.bias.indices) != 1):
            raise ScheduleError(f"{path.bias.tensor.name} is no input with one value for each channel")
        channel = path.channel if path.bias is None else path.bias.indices[0]
        if channel is None:
            channel = self.axis[min(1, len(self.axis) - 1)]
        if path.channel is not None and path.channel != channel:
            raise ScheduleError(f"{self.name} takes bias and scale of different channels")
        count = bounds(channel)[1] + 1 if bias is None else bias.shape[0]
        own = channel
        if block is not None:
            alike, few = bias is None and path.channel is None, plain_integer(block)
            if not alike or few is None or not 1 <= few <= count:
                raise ScheduleError(
                    f"the block of {self.name} has {block!r} parameters; 1 to {count} are possible where all "
                    f"channels have the same"
                )
            count, own = few, simplify(channel % few)
        label = schedule._fresh(name or "par")
        axes = IterVar(self._fresh("c"), count), IterVar("j", 2)
        prepared = path.preparation
        element = Parameter(
            NO_BIAS if bias is None else Read(bias, (axes[0],)),
            axes[0],
            axes[1],
            (INT32_MIN, INT32_MAX) if prepared is None else prepared.bounds,
            0 if prepared is None else prepared.offset,
            path.words,
        )
        packed = Compute(label, (count, 2), "int32", axes, element).tensor
        how = Interleaved(channels=count, words=path.words)
        stage = Stage(schedule, packed, axes, element, list(axes), rooted=True, host=how)
        if bias is not None and prepared is not None:
            assert isinstance(bias, Tensor)
            stage.preparation = bias, prepared
        body: Expr = Finished(root, path.ops(packed[own, 0], packed[own, 1]))
        self.body = body if cast is None else Cast(body, cast.to)
        schedule._insert(stage, self)
        known = {} if block is None else {"block": count}
        self._record("pack_parameters", name=packed.name, **known)
        return packed

    def set_scope(self, scope: Scope) -> None:
        """Keep the result in a scratchpad instead of DRAM.

        Raises:
            ScheduleError: it is an output, which must be in DRAM.
        """
        if self.tensor in self.schedule.outputs:
            raise ScheduleError(f"{self.name} is an output; it must be in DRAM: use cache_write")
        self.scope = check_scope(scope)
        self._record("set_scope", scope=scope.name)

    def tensorize(self, axis: IterVar | str, intrin: Intrinsic) -> None:
        """Replace the loops from ``axis`` inward by an intrinsic that computes the same.

            for yi in range(8):                     vdla.fused_gemm8x8_add(CL, AL, BL)
                for xi in range(8):
                    for ki in range(8):
                        CL[yi][xi] += AL[ki][yi] * BL[ki][xi]

        Whether the block unifies with the intrinsic shows when the nest is tensorized.

        Raises:
            ScheduleError: the axis is no loop of this stage, or ``intrin`` no intrinsic.
        """
        loop = self._leaf(axis)
        self.tensorized = (loop, check_intrinsic(intrin))
        self._record("tensorize", axis=loop.name, intrin=intrin.name)

    # --- helpers ---------------------------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Whether its loops are as they were made, no sum's, and nothing is computed at one of them."""
        attached = any(other.attach is not None and other.attach[0] is self for other in self.schedule.stages)
        return (
            self.leaves == list(self.axis)
            and self.tensorized is None
            and self.attach is None
            and not attached
        )

    def _check_unnamed(self, loop: IterVar) -> None:
        for other in self.schedule.stages:
            if other.attach == (self, loop):
                raise ScheduleError(
                    f"{other.name} is computed at {loop.name} of {self.name}; "
                    f"split and fuse before compute_at"
                )
        if self.tensorized is not None and self.tensorized[0] is loop:
            raise ScheduleError(f"{self.name} is tensorized at {loop.name}; split and fuse before tensorize")

    def _record(self, op: str, **arguments: Any) -> None:
        self.schedule.steps.append({"op": op, "stage": self.name, **arguments})


class Schedule:
    """The stages of a computation; ``schedule[tensor]`` is the stage of a tensor.

    Attributes:
        outputs: the tensors that are to be computed.
        stages: in an order in which each comes after all that it reads.
        steps: the operators applied so far, as plain data.
    """

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        self.outputs = tuple(outputs)
        self.steps: list[Step] = []
        self.stages: list[Stage] = []
        self.inputs: list[Tensor] = []
        for tensor in producers(outputs):
            if isinstance(tensor.op, Placeholder):
                self.inputs.append(tensor)
            else:
                op = tensor.op
                leaves = [*op.axis, *op.reduce_axis]
                self.stages.append(Stage(self, tensor, op.axis, op.body, leaves))
        names = [t.name for t in [*self.inputs, *(s.tensor for s in self.stages)]]
        for name in names:
            if names.count(name) > 1:
                raise ScheduleError(f"two tensors are named {name!r}; give each its own name")

    def __getitem__(self, tensor: Tensor | Compute | Stage | str) -> Stage:
        for stage in self.stages:
            if tensor in (stage, stage.tensor, stage.tensor.op, stage.name):
                return stage
        name = tensor if isinstance(tensor, str) else tensor.name
        raise ScheduleError(
            f"{name!r} is no stage of this schedule; {nearest(name, [s.name for s in self.stages])}"
        )

    def tensor(self, name: str) -> Tensor:
        """The input or stage tensor of a name."""
        every = {t.name: t for t in [*self.inputs, *(s.tensor for s in self.stages)]}
        if name not in every:
            raise ScheduleError(f"{name!r} is no tensor of this schedule; {nearest(name, every)}")
        return every[name]

    def readers(self, tensor: Tensor) -> list[Stage]:
        """The stages that read a tensor."""
        return [s for s in self.stages if any(read.tensor is tensor for read in reads(s.body))]

    def depends(self, stage: Stage, tensor: Tensor) -> bool:
        """Whether ``stage`` reads ``tensor``, directly or through others."""
        direct = {read.tensor for read in reads(stage.body)}
        return tensor in direct or any(self.depends(s, tensor) for s in self.stages if s.tensor in direct)

    def cache_read(
        self,
        tensor: Tensor,
        scope: Scope,
        readers: Sequence[Tensor | Stage] | None = None,
        *,
        name: str | None = None,
    ) -> Tensor:
        """Have the readers of a tensor read a copy in a scratchpad.

            C[y] = A[y] + 1             AL[y] = A[y]
                                        C[y] = AL[y] + 1

        Args:
            tensor: what is copied.
            scope: where to.
            readers: the stages that shall use the copy; all that read the tensor if not given.
            name: of the copy; the tensor's with an L behind it if not given.

        Raises:
            ScheduleError: nobody reads the tensor, or one of ``readers`` does not.
        """
        check_scope(scope)
        users = self.readers(tensor)
        if readers is not None:
            chosen = [self[reader] for reader in readers]
            for stage in chosen:
                if stage not in users:
                    raise ScheduleError(
                        f"{stage.name} does not read {tensor.name}; readers are {_names(users)}"
                    )
            users = chosen
        if not users:
            raise ScheduleError(f"nobody reads {tensor.name}; there is nothing to cache")
        axis = self._copy_axes(tensor)
        copy = _new_tensor(self._fresh(name or tensor.name + "L"), tensor, axis, tensor.dtype, tensor[axis])
        for stage in users:
            stage.body = _redirect(stage.body, tensor, copy)
        self._insert(Stage(self, copy, axis, tensor[axis], list(axis), scope=scope), users[0])
        named = None if readers is None else [s.name for s in users]
        self._record_cache("cache_read", tensor, scope, copy, readers=named)
        return copy

    def cache_write(self, tensor: Tensor, scope: Scope, *, name: str | None = None) -> Tensor:
        """Compute a tensor in a scratchpad and copy it out when it is done.

            for y in range(64):         for y in range(64):
                C[y] = A[y] + 1             CL[y] = A[y] + 1
                                        for y in range(64):
                                            C[y] = CL[y]

        The loops made so far go to the copy's computation, and the tensor gets new ones of the same names
        for its space axes. A cast to the tensor's dtype stays with the tensor: the scratchpad holds sums.

        Raises:
            ScheduleError: the tensor is not computed here.
        """
        check_scope(scope)
        stage = self[tensor]
        outer = stage.body.to if isinstance(stage.body, Cast) else None
        body = stage.body.value if isinstance(stage.body, Cast) else stage.body
        dtype = "int32" if isinstance(body, Sum) else body.dtype
        cached = _new_tensor(self._fresh(name or tensor.name + "L"), tensor, stage.axis, dtype, body)
        inner = Stage(
            self,
            cached,
            stage.axis,
            body,
            stage.leaves,
            stage.relations,
            scope=scope,
            tensorized=stage.tensorized,
            unrolled=stage.unrolled,
            threads=stage.threads,
        )
        for other in self.stages:
            if other.attach is not None and other.attach[0] is stage:
                other.attach = (inner, other.attach[1])
        self._renew(stage)
        read: Expr = cached[stage.axis]
        stage.body = read if outer is None else Cast(read, outer)
        stage.tensorized = None
        self._insert(inner, stage)
        self._record_cache("cache_write", tensor, scope, cached)
        return cached

    def split_phases(self, tensor: Tensor | str, dimension: int, step: int) -> list[Tensor]:
        """Have elements of a tensor that are a multiple of ``step`` apart be a tensor of their own.

            for x in range(8):                      for x in range(4):
                A[x] = B[x] + 1                         A_0[x] = B[2*x] + 1
            for x in range(4):                      for x in range(4):
                C[x] = max(A[2*x], A[2*x+1])            A_1[x] = B[2*x+1] + 1
                                                    for x in range(4):
                                                        C[x] = max(A_0[x], A_1[x])

        Phases of an input are copies. A phase that nobody reads is not computed.

        Args:
            tensor: an input, or what is computed by a stage whose loops are as they were made.
            dimension: of the tensor.
            step: number of phases, at least 1.

        Returns:
            The phases that are read, in order.

        Raises:
            ScheduleError: the tensor is a sum or an output, or its loops have been named by other operators;
                or somebody reads it at places that may be in several phases.
        """
        source = self.tensor(tensor if isinstance(tensor, str) else tensor.name)
        count, d = plain_integer(step), plain_integer(dimension)
        if count is None or count < 1:
            raise ScheduleError(f"{source.name} is split into {step!r} phases; it must be at least 1")
        if d is None or not 0 <= d < len(source.shape):
            raise ScheduleError(f"{source.name} has no dimension {dimension!r}; it has {len(source.shape)}")
        readers = self.readers(source)
        own = None if source in self.inputs else self[source]
        if source in self.outputs or not readers or (own is not None and not own.is_plain):
            raise ScheduleError(
                f"{source.name} is an output, a sum, or has loops that other operators have named; "
                f"it cannot be split into phases"
            )
        found = {n: self._phase(source, own, d, count, n) for n in _phases_read(source, readers, d, count)}
        before = readers[0] if own is None else own
        for phase in found.values():
            self._insert(phase, before)
        tensors = {n: phase.tensor for n, phase in found.items()}
        for stage in readers:
            stage.body = rewrite(stage.body, lambda n: _in_phase(n, source, d, count, tensors))
        if own is not None:
            self.stages.remove(own)
        self.steps.append({"op": "split_phases", "tensor": source.name, "dimension": d, "step": count})
        return list(tensors.values())

    def _phase(self, source: Tensor, own: Stage | None, d: int, step: int, number: int) -> Stage:
        """A stage of every ``step``-th element from a number on."""
        shape = list(source.shape)
        shape[d] = -(-(shape[d] - number) // step)
        names = [v.name for v in own.axis] if own is not None else [f"i{n}" for n in range(len(shape))]
        axis = tuple(IterVar(name, extent) for name, extent in zip(names, shape, strict=True))
        at = tuple(simplify(v * step + number) if n == d else v for n, v in enumerate(axis))
        body = source[at] if own is None else substitute(own.body, dict(zip(own.axis, at, strict=True)))
        name = self._fresh(f"{source.name}_{number}")
        made = Compute(name, tuple(shape), source.dtype, axis, body).tensor
        return Stage(self, made, axis, body, list(axis))

    def _identity(self, rows: int, name: str | None, reader: Stage) -> Tensor:
        """An identity matrix, for a stage that is going to read it."""
        axes = IterVar("i", rows), IterVar("j", rows)
        element = unit_element(axes)
        unit = Compute(self._fresh(name or "identity"), (rows, rows), "int8", axes, element).tensor
        self._insert(Stage(self, unit, axes, element, list(axes), rooted=True, host="identity"), reader)
        return unit

    def _renew(self, stage: Stage) -> None:
        """Give ``stage`` new axes and the space part of its loops anew, under the same names."""
        twins: dict[IterVar, IterVar] = {}

        def twin(v: IterVar) -> IterVar:
            return twins.setdefault(v, IterVar(v.name, v.extent, v.kind))

        leaves, relations = stage.leaves, stage.relations
        stage.axis = tuple(twin(v) for v in stage.axis)
        stage.relations = []
        for relation in relations:
            if relation.outer.kind == "reduce":
                continue
            if isinstance(relation, Split):
                made: Split | Fuse = Split(
                    twin(relation.parent), twin(relation.outer), twin(relation.inner), relation.factor
                )
            else:
                made = Fuse(twin(relation.outer), twin(relation.inner), twin(relation.fused))
            stage.relations.append(made)
        stage.leaves = [twin(v) for v in leaves if v.kind == "space"]
        stage.unrolled = {twin(v) for v in stage.unrolled if v.kind == "space"}
        stage.threads = {twin(v) for v in stage.threads if v.kind == "space"}

    def _copy_axes(self, tensor: Tensor) -> tuple[IterVar, ...]:
        if isinstance(tensor.op, Compute):
            return tuple(IterVar(v.name, v.extent) for v in tensor.op.axis)
        return tuple(IterVar(f"i{n}", extent) for n, extent in enumerate(tensor.shape))

    def _fresh(self, name: str) -> str:
        check_name(name)
        taken = {t.name for t in [*self.inputs, *(s.tensor for s in self.stages)]}
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}{number}"
        return candidate

    def _insert(self, stage: Stage, before: Stage) -> None:
        self.stages.insert(self.stages.index(before), stage)

    def _record_cache(self, op: str, tensor: Tensor, scope: Scope, made: Tensor, **arguments: Any) -> None:
        self.steps.append(
            {"op": op, "tensor": tensor.name, "scope": scope.name, "name": made.name, **arguments}
        )


def create_schedule(outputs: Tensor | Compute | Stage | Sequence[Tensor | Compute]) -> Schedule:
    """The naive schedule: every stage in DRAM, its loops in the order of its axes.

    Raises:
        ScheduleError: an output is not computed, or names collide.
    """
    every = outputs if isinstance(outputs, Sequence) else [outputs]
    tensors = []
    for output in every:
        if not isinstance(output, Tensor | Compute | Placeholder | Stage):
            raise ScheduleError(f"an output is {output!r}; it must be a tensor, as te.compute makes")
        tensors.append(output if isinstance(output, Tensor) else output.tensor)
    for tensor in tensors:
        if not isinstance(tensor.op, Compute):
            raise ScheduleError(f"{tensor.name} is a placeholder; only what is computed can be scheduled")
    return Schedule(tensors)


def _places(node: Expr, source: Tensor, d: int, step: int) -> tuple[int, Expr] | None:
    """In which phase a read of a tensor always is, and where there; None if it is not always the same."""
    assert isinstance(node, Read)
    form = linear(node.indices[d])
    if any(factor % step for _, factor in form.terms):
        return None
    number = form.constant % step
    terms = tuple((atom, factor // step) for atom, factor in form.terms)
    return number, Linear((form.constant - number) // step, terms).expr()


def _phases_read(source: Tensor, readers: Sequence[Stage], d: int, step: int) -> list[int]:
    """The phases that are read.

    Raises:
        ScheduleError: a read may be in several.
    """
    found = set()
    for stage in readers:
        for read in reads(stage.body):
            if read.tensor is source:
                place = _places(read, source, d, step)
                if place is None:
                    raise ScheduleError(
                        f"{stage.name} reads {format_expr(read)}; that may be in any of {step} phases"
                    )
                found.add(place[0])
    return sorted(found)


def _in_phase(node: Expr, source: Tensor, d: int, step: int, phases: dict[int, Tensor]) -> Expr | None:
    """A read of a phase in place of one of the whole."""
    if not isinstance(node, Read) or node.tensor is not source:
        return None
    place = _places(node, source, d, step)
    assert place is not None
    return phases[place[0]][(*node.indices[:d], place[1], *node.indices[d + 1 :])]


def _new_tensor(name: str, like: Tensor, axis: tuple[IterVar, ...], dtype: Any, body: Expr) -> Tensor:
    return Compute(name, like.shape, dtype, axis, body).tensor


def _redirect(body: Expr, old: Tensor, new: Tensor) -> Expr:
    return rewrite(body, lambda n: Read(new, n.indices) if isinstance(n, Read) and n.tensor is old else None)


def _with_axis(node: Expr, old: IterVar, new: IterVar) -> Expr | None:
    """A sum over ``new`` instead of ``old``, if the node is a sum; its body is taken as it is."""
    if not isinstance(node, Sum):
        return None
    return Sum(node.body, tuple(new if axis is old else axis for axis in node.axes))


def _names(stages: Sequence[Stage]) -> str:
    return ", ".join(s.name for s in stages) or "none"

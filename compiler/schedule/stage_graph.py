"""The stages of a schedule and the operators that transform one stage.

Operators change the loop nest as their docstrings show, and append entries to ``Schedule.steps``, from which
``schedule_steps`` rebuilds the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from accel.base.arguments import plain_integer
from accel.base.deprecated_modules import renamed_attributes
from accel.base.errors import ScheduleError, nearest
from accel.compiler.expr.epilogue_operators import Finished
from accel.compiler.expr.scalar_expressions import (
    Cast,
    Expr,
    IterVar,
    Read,
    Sum,
    reads,
    rewrite,
    substitute,
)
from accel.compiler.expr.table_expressions import TableEntry
from accel.compiler.expr.tensor_expressions import (
    Compute,
    Placeholder,
    Tensor,
    check_name,
    producers,
    reduction,
)
from accel.compiler.expr.window_expressions import window_of
from accel.compiler.schedule.compute_placement import PlacedLoops
from accel.compiler.schedule.grouped_computations import find_groups, merged_sum, wide_weights
from accel.compiler.schedule.identity_products import (
    added_residual,
    product_body,
    read_along,
    unit_element,
    with_residual_product,
)
from accel.compiler.schedule.parameter_packing import (
    parameter_channels,
    parameter_element,
    store_look_up,
    store_unit_epilogue,
    with_table,
)
from accel.compiler.schedule.stage_splits import Fuse, Split
from accel.compiler.target.intrinsic_declaration import Intrinsic, check_intrinsic
from accel.compiler.target.memory_scope import Scope, check_scope
from accel.core.scratchpad_specs import TABLE_BYTES
from accel.image.packed_layout import BlockDiagonal, Interleaved, Preparation

Step = dict[str, Any]
"""One operator call as plain data, see ``schedule_steps``."""


HostPacking = BlockDiagonal | Interleaved | Literal["identity", "table"]


@dataclass(eq=False)
class Stage(PlacedLoops):
    """The loop nest that computes one tensor: ``schedule[tensor]``.

    Attributes:
        axis: one variable per dimension of the tensor.
        body: the element's value, in terms of ``axis`` and the reduce axes.
        leaves: the loops, outermost first.
        relations: splits and fuses, in order.
        scope: the scratchpad that holds the result, or None for DRAM.
        attach: the stage and loop inside which it is computed. None: outside all loops, or for a copy where
            its reader's intrinsic needs it.
        is_root: whether ``compute_root`` placed it outside all loops.
        resident_at: the consumer and loop during which resident data stay, or None for the whole program.
        is_resident: whether copied data stay in the scratchpad across iterations of the loop in ``attach``.
        prefetches: whether a second buffer set receives the data of the next iteration of ``resident_at``.
        starts_after: the stage whose first copy is issued before this stage's.
        host_packing: how the host makes the tensor before the run, or None if the machine does.
        preparation: an input that the host changes before the run, and how.
        tensorized: the outermost loop that an intrinsic replaces, and the intrinsic.
        unrolled, threads: the unrolled loops, and the loops over virtual threads.
    """

    schedule: StageGraph
    tensor: Tensor
    axis: tuple[IterVar, ...]
    body: Expr
    leaves: list[IterVar]
    relations: list[Split | Fuse] = field(default_factory=list)
    scope: Scope | None = None
    attach: tuple[Stage, IterVar] | None = None
    is_root: bool = False
    resident_at: tuple[Stage, IterVar] | None = None
    is_resident: bool = False
    prefetches: bool = False
    starts_after: Stage | None = None
    host_packing: HostPacking | None = None
    preparation: tuple[Tensor, Preparation] | None = None
    tensorized: tuple[IterVar, Intrinsic] | None = None
    unrolled: set[IterVar] = field(default_factory=set)
    threads: set[IterVar] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def op(self) -> Stage:
        """The stage itself, so that ``s[C].op.axis`` works as in TVM."""
        return self

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        found = reduction(self.body)
        return found.axes if found is not None else ()

    @property
    def is_copy(self) -> bool:
        """Whether the stage only moves, pads or skips elements."""
        return window_of(self.axis, self.body) is not None

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes(
            {
                "ahead": "prefetches",
                "copies": "is_copy",
                "host": "host_packing",
                "is_plain": "has_plain_loops",
                "keep": "resident_at",
                "keeps": "is_resident",
                "rooted": "is_root",
            }
        )

    def __repr__(self) -> str:
        return f"Stage({self.name}: {', '.join(v.name for v in self.leaves)})"

    # --- operators -------------------------------------------------------------------------------

    def compute_inline(self) -> None:
        """Compute each element where it is read.

            for y in range(64):         for y in range(64):
                B[y] = A[y] + 1             C[y] = (A[y] + 1) * 2
            for y in range(64):
                C[y] = B[y] * 2

        Raises:
            ScheduleError: the stage is an output or a sum, or another stage is computed at one of its loops.
        """
        schedule = self.schedule
        if self.tensor in schedule.outputs:
            raise ScheduleError(f"{self.name} is an output; only tensors that others read can be inlined")
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
        self._record_step("compute_inline")

    def merge_groups(self, axis: IterVar | str, count: int, *, name: str | None = None) -> Tensor:
        """Sum ``count`` neighbouring groups at once.

            for o in range(64):                     for o in range(64):
                for c in range(1):                      for c in range(16):
                    S[o] += A[o+c] * W[o][c]                S[o] += A[o//16*16+c] * W_wide[o][c]

        The host packs W as wide weights, outside all loops: ``W_wide[o][c] = W[o][c-o%16]`` for c within the
        group, otherwise 0.

        Args:
            axis: the reduce axis within a group.
            name: name of the wide weights, by default the weights' with the suffix ``_wide``.

        Raises:
            ScheduleError: the stage does not sum groups along the axis, its weights are not an input, it has
                fewer groups, or :meth:`split` would refuse the axis.
        """
        schedule = self.schedule
        loop = self._free_loop(axis)
        groups = find_groups(self.name, self.body, loop)
        weights = groups.weights.tensor
        if weights not in schedule.inputs or len(schedule.readers(weights)) > 1:
            raise ScheduleError(
                f"{weights.name} is not an input that {self.name} alone reads; the host can widen only such "
                f"inputs: merge groups before cache_read"
            )
        merged = plain_integer(count)
        if merged is None or not 1 <= merged <= groups.number:
            raise ScheduleError(
                f"the number of groups to merge is {count!r}; {self.name} has {groups.number}"
            )
        count = merged
        wide = wide_weights(schedule._unused_name(name or f"{weights.name}_wide"), groups, count)
        inputs = IterVar(loop.name, count * groups.columns, "reduce")
        self.body = merged_sum(self.body, groups, wide, inputs, count)
        self.leaves[self.leaves.index(loop)] = inputs
        how = BlockDiagonal(rows=groups.rows, merged=count)
        schedule._insert_host_packed(wide, how, before=self)
        self._record_step("merge_groups", axis=loop.name, count=count, name=wide.name)
        return wide.tensor

    def multiply_identity(
        self,
        axis: IterVar | str,
        block: int,
        *,
        name: str | None = None,
        unit: Tensor | str | None = None,
    ) -> Tensor:
        """Turn a sum or a copy into products with an identity matrix, which a GEMM core can compute.

            for o in range(64):                     for o in range(64):
                for d in range(9):                      for c in range(16):
                    S[o] += A[o][d]                         for d in range(9):
                                                                S[o] += A[o//16*16+c][d] * identity[o%16][c]

        The matrix is a constant in DRAM, outside all loops.

        Args:
            axis: the axis along which elements become blocks.
            block: rows and columns of the matrix.
            name: name of the matrix, by default ``identity``.
            unit: the matrix of another stage, by default a new one.

        Raises:
            ScheduleError: the stage is not a sum or copy of elements of one tensor with the axis as an index,
                the axis is shorter than a block, :meth:`split` would refuse it, or ``unit`` is not an
                identity matrix of that size.
        """
        schedule = self.schedule
        loop = self._free_loop(axis)
        read_along(self.name, self.body, loop)
        rows = plain_integer(block)
        if rows is None or not 1 <= rows <= loop.extent:
            raise ScheduleError(
                f"the identity matrix for {self.name} has {block!r} rows; along {loop.name} it has 1 to "
                f"{loop.extent}"
            )
        shared = None if unit is None else schedule[unit]
        if shared is not None and (shared.host_packing != "identity" or shared.tensor.shape != (rows, rows)):
            raise ScheduleError(f"{shared.name} is not an identity matrix of {rows} rows")
        matrix = schedule._insert_identity(rows, name, before=self) if shared is None else shared.tensor
        column = IterVar(self._unused_name("c"), rows, "reduce")
        self.body = product_body(self.body, loop, column, matrix)
        reduced = (n for n, leaf in enumerate(self.leaves) if leaf.kind == "reduce")
        self.leaves.insert(next(reduced, len(self.leaves)), column)
        known = {} if shared is None else {"unit": matrix.name}
        self._record_step("multiply_identity", axis=loop.name, block=rows, name=matrix.name, **known)
        return matrix

    def add_product(
        self, tensor: Tensor | str, axis: IterVar | str, block: int, *, name: str | None = None
    ) -> Tensor:
        """Let the GEMM core add a residual to requantized sums, as a product with an identity matrix.

            for o in range(64):                     for o in range(64):
                C[o] = (S[o] >> 8) + R[o]               C[o] = (S[o] >> 8) + R[o]*identity[o%16][o%16]

        The load unit then loads the residual into ``inp_buffer``.

        Args:
            tensor: the residual.
            axis, block, name: as in :meth:`multiply_identity`.

        Raises:
            ScheduleError: the stage does not add this tensor at its own axes, the block is not a positive
                integer, or :meth:`split` would refuse the axis.
        """
        schedule = self.schedule
        loop = self._free_loop(axis)
        rows = plain_integer(block)
        if rows is None or rows < 1:
            raise ScheduleError(f"the identity matrix for {self.name} has {block!r} rows; it has at least 1")
        label = tensor if isinstance(tensor, str) else tensor.name
        residual = added_residual(self.name, self.body, self.axis, label)
        unit = schedule._insert_identity(rows, name, before=self)
        self.body = with_residual_product(self.body, residual, unit, loop)
        self._record_step("add_product", tensor=label, axis=loop.name, block=rows, name=unit.name)
        return unit

    def pack_parameters(self, *, block: int | None = None, name: str | None = None) -> Tensor:
        """Let the store unit of a machine with ``post=1`` compute the stage, with a bias and a scale per
        channel that the host packs.

            for o in range(64):                     for o in range(64):
                C[o] = requantized(S[o] + bias[o])      C[o] = requantize(S[o], par[o][0], par[o][1])

        ``cache_read`` loads the parameters from DRAM into ``par_buffer``.

        Args:
            block: number of channels with parameters, if all channels have the same: no bias, and one scale.
                Channel ``o`` then uses the parameters ``o % block``.
            name: name of the parameters, by default ``par``.

        Raises:
            ScheduleError: the sums have no declared epilogue, the store unit cannot compute it exactly, the
                bias is not an input, or a block is given although channels differ or are fewer.
        """
        schedule = self.schedule
        root, path = store_unit_epilogue(self.name, self.body, schedule.sum_in)
        bias = None if path.bias is None else path.bias.tensor
        if path.bias is not None and (bias not in schedule.inputs or len(path.bias.indices) != 1):
            raise ScheduleError(f"{path.bias.tensor.name} is not an input with one value for each channel")
        count, channel = parameter_channels(self.name, self.axis, path, block)
        label = schedule._unused_name(name or "par")
        axes = IterVar(self._unused_name("c"), count), IterVar("j", 2)
        element = parameter_element(path, axes)
        packed = Compute(label, (count, 2), "int32", axes, element)
        how = Interleaved(channels=count, words=path.words)
        stage = schedule._insert_host_packed(packed, how, before=self)
        if bias is not None and path.preparation is not None:
            assert isinstance(bias, Tensor)
            stage.preparation = bias, path.preparation
        body: Expr = Finished(root, path.ops(packed.tensor[channel, 0], packed.tensor[channel, 1]))
        self.body = Cast(body, self.body.to) if isinstance(self.body, Cast) else body
        known = {} if block is None else {"block": count}
        self._record_step("pack_parameters", name=packed.name, **known)
        return packed.tensor

    def pack_table(self, *, name: str | None = None) -> Tensor:
        """Put the table of a stage's look-up in DRAM, as uint8[1, 256], by default named ``tab``.

        ``cache_read`` loads it into ``tab_buffer``.

        Raises:
            ScheduleError: the stage looks nothing up, or ``pack_parameters`` has not been called.
        """
        look_up = store_look_up(self.name, self.body)
        label = self.schedule._unused_name(name or "tab")
        axes = IterVar(self._unused_name("t"), 1), IterVar("j", TABLE_BYTES)
        packed = Compute(label, (1, TABLE_BYTES), "uint8", axes, TableEntry(axes[1], look_up.entries))
        self.schedule._insert_host_packed(packed, "table", before=self)
        self.body = with_table(self.body, look_up, packed.tensor)
        self._record_step("pack_table", name=packed.name)
        return packed.tensor

    def set_scope(self, scope: Scope) -> None:
        """Hold the result in a scratchpad instead of DRAM.

        Raises:
            ScheduleError: the stage is an output, or ``scope`` is not a scope.
        """
        if self.tensor in self.schedule.outputs:
            raise ScheduleError(f"{self.name} is an output; it must be in DRAM: use cache_write")
        self.scope = check_scope(scope)
        self._record_step("set_scope", scope=scope.name)

    def tensorize(self, axis: IterVar | str, intrin: Intrinsic) -> None:
        """Replace the loops from ``axis`` inward by an intrinsic that computes the same.

            for yi in range(8):                     vdla.fused_gemm8x8_add(CL, AL, BL)
                for xi in range(8):
                    for ki in range(8):
                        CL[yi][xi] += AL[ki][yi] * BL[ki][xi]

        ``te.tensorize`` later checks that the block unifies with the intrinsic.

        Raises:
            ScheduleError: the axis is not a loop of this stage, or ``intrin`` is not an intrinsic.
        """
        loop = self._find_loop(axis)
        self.tensorized = (loop, check_intrinsic(intrin))
        self._record_step("tensorize", axis=loop.name, intrin=intrin.name)

    # --- helpers ---------------------------------------------------------------------------------

    @property
    def has_plain_loops(self) -> bool:
        """Whether the loops are the tensor's axes, unused by compute_at and tensorize."""
        attached = any(other.attach is not None and other.attach[0] is self for other in self.schedule.stages)
        return (
            self.leaves == list(self.axis)
            and self.tensorized is None
            and self.attach is None
            and not attached
        )

    def _stage_of(self, tensor: Stage | Tensor) -> Stage:
        return self.schedule[tensor]

    def _check_reader(self, stage: Stage) -> None:
        if stage is self or not self.schedule.depends(stage, self.tensor):
            raise ScheduleError(f"{self.name} cannot be computed at {stage.name}, which does not need it")
        if self.tensor in self.schedule.outputs:
            raise ScheduleError(f"{self.name} is an output; it is computed outside of all loops")

    def _check_unclaimed(self, loop: IterVar) -> None:
        for other in self.schedule.stages:
            if other.attach == (self, loop):
                raise ScheduleError(
                    f"{other.name} is computed at {loop.name} of {self.name}; "
                    f"split and fuse before compute_at"
                )
        if self.tensorized is not None and self.tensorized[0] is loop:
            raise ScheduleError(f"{self.name} is tensorized at {loop.name}; split and fuse before tensorize")

    def _record_step(self, op: str, **arguments: Any) -> None:
        self.schedule.steps.append({"op": op, "stage": self.name, **arguments})


class StageGraph:
    """The stages of a computation and the tensors that they read.

    Attributes:
        stages: the stages, each after all stages that it reads.
        steps: the operators applied so far.
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
            f"{name!r} is not a stage of this schedule; {nearest(name, [s.name for s in self.stages])}"
        )

    def tensor(self, name: str) -> Tensor:
        every = {t.name: t for t in [*self.inputs, *(s.tensor for s in self.stages)]}
        if name not in every:
            raise ScheduleError(f"{name!r} is not a tensor of this schedule; {nearest(name, every)}")
        return every[name]

    def sum_in(self, tensor: object) -> Sum | None:
        return next((reduction(s.body) for s in self.stages if s.tensor is tensor), None)

    def readers(self, tensor: Tensor) -> list[Stage]:
        return [s for s in self.stages if any(read.tensor is tensor for read in reads(s.body))]

    def depends(self, stage: Stage, tensor: Tensor) -> bool:
        direct = {read.tensor for read in reads(stage.body)}
        return tensor in direct or any(self.depends(s, tensor) for s in self.stages if s.tensor in direct)

    def _insert_identity(self, rows: int, name: str | None, *, before: Stage) -> Tensor:
        axes = IterVar("i", rows), IterVar("j", rows)
        label = self._unused_name(name or "identity")
        unit = Compute(label, (rows, rows), "int8", axes, unit_element(axes))
        return self._insert_host_packed(unit, "identity", before=before).tensor

    def _insert_host_packed(self, op: Compute, packing: HostPacking, *, before: Stage) -> Stage:
        stage = Stage(self, op.tensor, op.axis, op.body, list(op.axis), is_root=True, host_packing=packing)
        self._insert_stage(stage, before)
        return stage

    def _unused_name(self, name: str) -> str:
        check_name(name)
        taken = {t.name for t in [*self.inputs, *(s.tensor for s in self.stages)]}
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}{number}"
        return candidate

    def _insert_stage(self, stage: Stage, before: Stage) -> None:
        self.stages.insert(self.stages.index(before), stage)

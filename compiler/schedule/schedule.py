"""Schedules: transformations of the loops of a computation that do not change its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel.base.arguments import plain_integer
from accel.base.errors import ScheduleError
from accel.base.html_summary import html_summary
from accel.compiler.expr.linear_expressions import simplify
from accel.compiler.expr.scalar_expressions import Cast, Expr, IterVar, Read, Sum, rewrite, substitute
from accel.compiler.expr.tensor_expressions import Compute, Placeholder, Tensor
from accel.compiler.schedule.stage_graph import Stage, StageGraph, Step
from accel.compiler.schedule.stage_splits import Fuse, Split
from accel.compiler.schedule.tensor_phases import phase_element, phases_read
from accel.compiler.target.memory_scope import Scope, check_scope

__all__ = ["Schedule", "Stage", "Step", "create_schedule"]


class Schedule(StageGraph):
    """The stages of a computation. ``schedule[tensor]`` is the stage of a tensor.

    For example, ``schedule[C].split("y", 8)`` splits a loop, and ``schedule.cache_read(A, scope)`` adds a
    stage.
    """

    def __repr__(self) -> str:
        stages = ", ".join(stage.tensor.name for stage in self.stages)
        return f"Schedule({stages}; {len(self.steps)} steps)"

    def _repr_html_(self) -> str:
        rows = []
        for stage in self.stages:
            place = "" if stage.attach is None else f", at {stage.attach[0].name}.{stage.attach[1].name}"
            scope = "DRAM" if stage.scope is None else stage.scope.name
            rows.append((f"{stage.name} in {scope}", f"{', '.join(v.name for v in stage.leaves)}{place}"))
        return html_summary("Schedule", rows)

    def cache_read(
        self,
        tensor: Tensor,
        scope: Scope,
        readers: Sequence[Tensor | Stage] | None = None,
        *,
        name: str | None = None,
    ) -> Tensor:
        """Let the readers of a tensor read a copy in a scratchpad.

            C[y] = A[y] + 1             AL[y] = A[y]
                                        C[y] = AL[y] + 1

        Args:
            readers: the stages that use the copy, by default all.
            name: name of the copy, by default the tensor's with the suffix L.

        Raises:
            ScheduleError: no stage reads the tensor, or one of ``readers`` does not.
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
            raise ScheduleError(f"no stage reads {tensor.name}; there is nothing to cache")
        axis = self._copy_axes(tensor)
        copy = _new_tensor(
            self._unused_name(name or tensor.name + "L"), tensor, axis, tensor.dtype, tensor[axis]
        )
        for stage in users:
            stage.body = _read_copy(stage.body, tensor, copy)
        self._insert_stage(Stage(self, copy, axis, tensor[axis], list(axis), scope=scope), users[0])
        named = None if readers is None else [s.name for s in users]
        self._record_cache("cache_read", tensor, scope, copy, readers=named)
        return copy

    def cache_write(self, tensor: Tensor, scope: Scope, *, name: str | None = None) -> Tensor:
        """Compute a tensor in a scratchpad, then copy it out.

            for y in range(64):         for y in range(64):
                C[y] = A[y] + 1             CL[y] = A[y] + 1
                                        for y in range(64):
                                            C[y] = CL[y]

        The new stage takes over the loops. The tensor gets new ones of the same names for its space axes, and
        keeps a cast to its dtype, since the scratchpad holds sums.

        Raises:
            ScheduleError: the tensor is not computed by a stage.
        """
        check_scope(scope)
        stage = self[tensor]
        outer = stage.body.to if isinstance(stage.body, Cast) else None
        body = stage.body.value if isinstance(stage.body, Cast) else stage.body
        dtype = "int32" if isinstance(body, Sum) else body.dtype
        cached = _new_tensor(self._unused_name(name or tensor.name + "L"), tensor, stage.axis, dtype, body)
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
        self._renew_loops(stage)
        read: Expr = cached[stage.axis]
        stage.body = read if outer is None else Cast(read, outer)
        stage.tensorized = None
        self._insert_stage(inner, stage)
        self._record_cache("cache_write", tensor, scope, cached)
        return cached

    def split_phases(self, tensor: Tensor | str, dimension: int, step: int) -> list[Tensor]:
        """Split a tensor into ``step`` tensors, each with every ``step``-th element.

            for x in range(8):                      for x in range(4):
                A[x] = B[x] + 1                         A_0[x] = B[2*x] + 1
            for x in range(4):                      for x in range(4):
                C[x] = max(A[2*x], A[2*x+1])            A_1[x] = B[2*x+1] + 1
                                                    for x in range(4):
                                                        C[x] = max(A_0[x], A_1[x])

        The phases of an input are copies. Unread phases are not computed.

        Args:
            tensor: an input, or the result of a stage with unchanged loops.
            step: number of phases, at least 1.

        Returns:
            The phases that are read, in order.

        Raises:
            ScheduleError: the tensor is a sum or an output, other operators changed its loops, or a stage
                reads it at indices that may be in several phases.
        """
        source = self.tensor(tensor if isinstance(tensor, str) else tensor.name)
        count, d = plain_integer(step), plain_integer(dimension)
        if count is None or count < 1:
            raise ScheduleError(f"{source.name} is split into {step!r} phases; it must be at least 1")
        if d is None or not 0 <= d < len(source.shape):
            raise ScheduleError(f"{source.name} has no dimension {dimension!r}; it has {len(source.shape)}")
        readers = self.readers(source)
        own = None if source in self.inputs else self[source]
        if source in self.outputs or not readers or (own is not None and not own.has_plain_loops):
            raise ScheduleError(
                f"{source.name} is an output, a sum, or has loops that other operators have named; "
                f"it cannot be split into phases"
            )
        bodies = [(reader.name, reader.body) for reader in readers]
        found = {
            n: self._phase_stage(source, own, d, count, n) for n in phases_read(source, bodies, d, count)
        }
        before = readers[0] if own is None else own
        for phase in found.values():
            self._insert_stage(phase, before)
        tensors = {n: phase.tensor for n, phase in found.items()}
        for stage in readers:
            stage.body = rewrite(stage.body, lambda n: phase_element(n, source, d, count, tensors))
        if own is not None:
            self.stages.remove(own)
        self.steps.append({"op": "split_phases", "tensor": source.name, "dimension": d, "step": count})
        return list(tensors.values())

    def _phase_stage(self, source: Tensor, own: Stage | None, d: int, step: int, number: int) -> Stage:
        shape = list(source.shape)
        shape[d] = -(-(shape[d] - number) // step)
        names = [v.name for v in own.axis] if own is not None else [f"i{n}" for n in range(len(shape))]
        axis = tuple(IterVar(name, extent) for name, extent in zip(names, shape, strict=True))
        at = tuple(simplify(v * step + number) if n == d else v for n, v in enumerate(axis))
        body = source[at] if own is None else substitute(own.body, dict(zip(own.axis, at, strict=True)))
        name = self._unused_name(f"{source.name}_{number}")
        made = Compute(name, tuple(shape), source.dtype, axis, body).tensor
        return Stage(self, made, axis, body, list(axis))

    def _renew_loops(self, stage: Stage) -> None:
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

    def _record_cache(self, op: str, tensor: Tensor, scope: Scope, made: Tensor, **arguments: Any) -> None:
        self.steps.append(
            {"op": op, "tensor": tensor.name, "scope": scope.name, "name": made.name, **arguments}
        )


def create_schedule(outputs: Tensor | Compute | Stage | Sequence[Tensor | Compute]) -> Schedule:
    """Return the naive schedule: every stage in DRAM, with loops in the order of its axes.

    Raises:
        ScheduleError: an output is not computed, or two tensors have the same name.
    """
    every = outputs if isinstance(outputs, Sequence) else [outputs]
    tensors = []
    for output in every:
        if not isinstance(output, Tensor | Compute | Placeholder | Stage):
            raise ScheduleError(f"an output is {output!r}; it must be a tensor, as from te.compute")
        tensors.append(output if isinstance(output, Tensor) else output.tensor)
    for tensor in tensors:
        if not isinstance(tensor.op, Compute):
            raise ScheduleError(f"{tensor.name} is a placeholder; only computed tensors can be scheduled")
    return Schedule(tensors)


def _new_tensor(name: str, like: Tensor, axis: tuple[IterVar, ...], dtype: Any, body: Expr) -> Tensor:
    return Compute(name, like.shape, dtype, axis, body).tensor


def _read_copy(body: Expr, old: Tensor, new: Tensor) -> Expr:
    return rewrite(body, lambda n: Read(new, n.indices) if isinstance(n, Read) and n.tensor is old else None)


def _names(stages: Sequence[Stage]) -> str:
    return ", ".join(s.name for s in stages) or "none"

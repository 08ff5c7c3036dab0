"""Schedules as data: a list of steps, each an operator call with its arguments by name.

For example, ``{"op": "split", "stage": "C", "axis": "y", "factor": 8, "names": ["yo", "yi"]}``.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from accel.base.errors import AccelError, ScheduleError, nearest
from accel.compiler.schedule.schedule import Schedule, Stage, Step
from accel.compiler.schedule.stage_splits import check_threads, thread_axis
from accel.compiler.target.intrinsic_declaration import Intrinsic
from accel.compiler.target.memory_scope import Scope

FindIntrinsic = Callable[[str], Intrinsic]
FindScope = Callable[[str], Scope]


class _Context(NamedTuple):
    schedule: Schedule
    find_intrinsic: FindIntrinsic
    find_scope: FindScope


def apply_steps(
    schedule: Schedule, steps: Sequence[Step], find_intrinsic: FindIntrinsic, find_scope: FindScope
) -> None:
    """Apply recorded steps to a schedule.

    Args:
        schedule: a fresh schedule of the same tensor expression.
        find_intrinsic, find_scope: a machine's intrinsics and scopes by name.

    Raises:
        ScheduleError: a step is malformed, or its operator fails. The message has the step's number.
    """
    if not isinstance(steps, Sequence):
        raise ScheduleError(f"the steps are {steps!r}; they must be a list, as Schedule.steps is")
    context = _Context(schedule, find_intrinsic, find_scope)
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            raise ScheduleError(f"schedule step {number} is {step!r}; it must hold an operator's arguments")
        try:
            _apply(context, step)
        except AccelError as error:
            raise ScheduleError(f"schedule step {number} ({step.get('op')}): {error}") from None
        except (TypeError, ValueError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ScheduleError(f"schedule step {number} is damaged ({what}): {step!r}") from None


def with_threads(steps: Sequence[Step], threads: int) -> list[Step]:
    """Return steps with another factor of each split whose inner loop is bound to virtual threads.

    Raises:
        ScheduleError: a bound loop is not the inner loop of a split.
    """
    threads = check_threads(threads)
    bound = {(step["stage"], step["axis"]) for step in steps if step["op"] == "bind"}
    changed: list[Step] = []
    found = set()
    for step in steps:
        made = (step["stage"], step["names"][1]) if step["op"] == "split" else None
        if made in bound:
            found.add(made)
            changed.append({**step, "factor": threads})
        else:
            changed.append(step)
    if not bound or found != bound:
        what = ", ".join(f"{axis} of {stage}" for stage, axis in sorted(bound - found)) or "no loop"
        raise ScheduleError(
            f"the schedule binds {what} to virtual threads; their number can be set only if the bound loop "
            f"is the inner loop of a split"
        )
    return changed


def _apply(context: _Context, step: Step) -> None:
    op = step.get("op")
    if not isinstance(op, str) or op not in _OPERATORS:
        raise ScheduleError(f"{op!r} is not an operator; {nearest(str(op), _OPERATORS)}")
    operator = _OPERATORS[op]
    for key in operator.required:
        if key not in step:
            raise ScheduleError(f"it has no {key!r}")
    known = ["op", *operator.required, *operator.optional]
    for key in step:
        if key not in known:
            raise ScheduleError(f"it has {str(key)!r}; {nearest(str(key), known)}")
    operator.apply(context, step)


class _Operator(NamedTuple):
    apply: Callable[[_Context, Step], object]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


def _cache_read(context: _Context, step: Step) -> None:
    schedule = context.schedule
    readers = None if step.get("readers") is None else [schedule[name] for name in step["readers"]]
    scope = context.find_scope(step["scope"])
    schedule.cache_read(schedule.tensor(step["tensor"]), scope, readers, name=step.get("name"))


def _cache_write(context: _Context, step: Step) -> None:
    schedule = context.schedule
    scope = context.find_scope(step["scope"])
    schedule.cache_write(schedule.tensor(step["tensor"]), scope, name=step.get("name"))


def _split_phases(context: _Context, step: Step) -> None:
    context.schedule.split_phases(step["tensor"], step["dimension"], step["step"])


def _stage(context: _Context, step: Step) -> Stage:
    return context.schedule[step["stage"]]


def _split(context: _Context, step: Step) -> None:
    names = _names(step)
    if names is not None and len(names) != 2:
        raise ScheduleError(f"the names are {names!r}; split makes two loops")
    _stage(context, step).split(step["axis"], step["factor"], names=names and (names[0], names[1]))


def _names(step: Step) -> tuple[str, ...] | None:
    names = step.get("names")
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ScheduleError(f"the names are {names!r}; a list of names is needed")
    return tuple(names)


def _tile(context: _Context, step: Step) -> None:
    _stage(context, step).tile(*step["axes"], *step["factors"], names=_names(step))


def _fuse(context: _Context, step: Step) -> None:
    _stage(context, step).fuse(step["outer"], step["inner"], name=step.get("name"))


def _reorder(context: _Context, step: Step) -> None:
    _stage(context, step).reorder(*step["axes"])


def _unroll(context: _Context, step: Step) -> None:
    _stage(context, step).unroll(step["axis"])


def _bind(context: _Context, step: Step) -> None:
    _stage(context, step).bind(step["axis"], thread_axis(step["thread"]))


def _compute_at(context: _Context, step: Step) -> None:
    _stage(context, step).compute_at(context.schedule[step["consumer"]], step["axis"])


def _compute_root(context: _Context, step: Step) -> None:
    _stage(context, step).compute_root()


def _compute_inline(context: _Context, step: Step) -> None:
    _stage(context, step).compute_inline()


def _keep_at(context: _Context, step: Step) -> None:
    ahead = step.get("ahead", False)
    _stage(context, step).keep_at(context.schedule[step["consumer"]], step["axis"], ahead=ahead)


def _keep_root(context: _Context, step: Step) -> None:
    _stage(context, step).keep_root()


def _start_after(context: _Context, step: Step) -> None:
    _stage(context, step).start_after(context.schedule[step["other"]])


def _merge_groups(context: _Context, step: Step) -> None:
    _stage(context, step).merge_groups(step["axis"], step["count"], name=step.get("name"))


def _multiply_identity(context: _Context, step: Step) -> None:
    _stage(context, step).multiply_identity(
        step["axis"], step["block"], name=step.get("name"), unit=step.get("unit")
    )


def _add_product(context: _Context, step: Step) -> None:
    _stage(context, step).add_product(step["tensor"], step["axis"], step["block"], name=step.get("name"))


def _pack_parameters(context: _Context, step: Step) -> None:
    _stage(context, step).pack_parameters(block=step.get("block"), name=step.get("name"))


def _pack_table(context: _Context, step: Step) -> None:
    _stage(context, step).pack_table(name=step.get("name"))


def _set_scope(context: _Context, step: Step) -> None:
    _stage(context, step).set_scope(context.find_scope(step["scope"]))


def _tensorize(context: _Context, step: Step) -> None:
    _stage(context, step).tensorize(step["axis"], context.find_intrinsic(step["intrin"]))


_OPERATORS: dict[str, _Operator] = {
    "cache_read": _Operator(_cache_read, ("tensor", "scope"), ("name", "readers")),
    "cache_write": _Operator(_cache_write, ("tensor", "scope"), ("name",)),
    "split_phases": _Operator(_split_phases, ("tensor", "dimension", "step")),
    "split": _Operator(_split, ("stage", "axis", "factor"), ("names",)),
    "tile": _Operator(_tile, ("stage", "axes", "factors"), ("names",)),
    "fuse": _Operator(_fuse, ("stage", "outer", "inner"), ("name",)),
    "reorder": _Operator(_reorder, ("stage", "axes")),
    "unroll": _Operator(_unroll, ("stage", "axis")),
    "bind": _Operator(_bind, ("stage", "axis", "thread")),
    "compute_at": _Operator(_compute_at, ("stage", "consumer", "axis")),
    "compute_inline": _Operator(_compute_inline, ("stage",)),
    "compute_root": _Operator(_compute_root, ("stage",)),
    "keep_at": _Operator(_keep_at, ("stage", "consumer", "axis"), ("ahead",)),
    "keep_root": _Operator(_keep_root, ("stage",)),
    "start_after": _Operator(_start_after, ("stage", "other")),
    "merge_groups": _Operator(_merge_groups, ("stage", "axis", "count"), ("name",)),
    "multiply_identity": _Operator(_multiply_identity, ("stage", "axis", "block"), ("name", "unit")),
    "add_product": _Operator(_add_product, ("stage", "tensor", "axis", "block"), ("name",)),
    "pack_parameters": _Operator(_pack_parameters, ("stage",), ("name", "block")),
    "pack_table": _Operator(_pack_table, ("stage",), ("name",)),
    "set_scope": _Operator(_set_scope, ("stage", "scope")),
    "tensorize": _Operator(_tensorize, ("stage", "axis", "intrin")),
}

"""Schedules as data: a list of steps, each one operator call with its arguments by name."""

from collections.abc import Callable, Sequence
from typing import Any

from accel.compiler.intrin import Intrinsic
from accel.compiler.schedule import Schedule, Step, thread_axis
from accel.compiler.scope import Scope
from accel.errors import AccelError, ScheduleError, nearest

FindIntrinsic = Callable[[str], Intrinsic]
FindScope = Callable[[str], Scope]


def apply_steps(
    schedule: Schedule, steps: Sequence[Step], find_intrinsic: FindIntrinsic, find_scope: FindScope
) -> None:
    """Apply recorded steps to a schedule.

    Args:
        schedule: a fresh one of the same tensor expression.
        steps: as :attr:`Schedule.steps` holds them.
        find_intrinsic, find_scope: a machine's intrinsics and scopes by name.

    Raises:
        ScheduleError: a step that does not apply, with its number.
    """
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            raise ScheduleError(f"schedule step {number} is {step!r}; it must hold an operator's arguments")
        try:
            _apply(schedule, dict(step), find_intrinsic, find_scope)
        except AccelError as error:
            raise ScheduleError(f"schedule step {number} ({step.get('op')}): {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ScheduleError(f"schedule step {number} is damaged ({what}): {step!r}") from None


def with_threads(steps: Sequence[Step], threads: int) -> list[Step]:
    """The same steps with another number of virtual threads: the splits whose inner loop is bound to
    them get another factor.

    Raises:
        ScheduleError: no loop is bound, or one that no split has made.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ScheduleError(f"the number of virtual threads is {threads!r}; it must be a positive integer")
    bound = {(step["stage"], step["axis"]) for step in steps if step["op"] == "bind"}
    changed: list[Step] = []
    found = set()
    for step in steps:
        made = (step.get("stage"), step["names"][1]) if step["op"] == "split" else None
        if made in bound:
            found.add(made)
            changed.append({**step, "factor": threads})
        else:
            changed.append(step)
    if not bound or found != bound:
        what = ", ".join(f"{axis} of {stage}" for stage, axis in sorted(bound - found)) or "no loop"
        raise ScheduleError(
            f"the schedule binds {what} to virtual threads; their number can be set if a loop is bound that "
            f"split has made, as its inner one"
        )
    return changed


def _apply(schedule: Schedule, step: Step, find_intrinsic: FindIntrinsic, find_scope: FindScope) -> None:
    op = step.pop("op")
    if op == "cache_read":
        tensor = schedule.tensor(step["tensor"])
        readers = None if step.get("readers") is None else [schedule[name] for name in step["readers"]]
        schedule.cache_read(tensor, find_scope(step["scope"]), readers, name=step["name"])
    elif op == "cache_write":
        schedule.cache_write(schedule.tensor(step["tensor"]), find_scope(step["scope"]), name=step["name"])
    elif op in _STAGE_OPERATORS:
        stage = schedule[step.pop("stage")]
        _STAGE_OPERATORS[op](schedule, stage, step, find_intrinsic, find_scope)
    else:
        raise ScheduleError(f"{op!r} is no operator; {nearest(str(op), [*_STAGE_OPERATORS, 'cache_read'])}")


def _split(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    first, second = step["names"]
    stage.split(step["axis"], step["factor"], names=(first, second))


def _tile(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    stage.tile(*step["axes"], *step["factors"])


def _fuse(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    stage.fuse(step["outer"], step["inner"], name=step["name"])


def _reorder(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    stage.reorder(*step["axes"])


def _unroll(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    stage.unroll(step["axis"])


def _bind(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    stage.bind(step["axis"], thread_axis(step["thread"]))


def _compute_at(schedule: Schedule, stage: Any, step: Step, *_: Any) -> None:
    stage.compute_at(schedule[step["consumer"]], step["axis"])


def _set_scope(schedule: Schedule, stage: Any, step: Step, _: Any, find_scope: FindScope) -> None:
    stage.set_scope(find_scope(step["scope"]))


def _tensorize(schedule: Schedule, stage: Any, step: Step, find_intrinsic: FindIntrinsic, _: Any) -> None:
    stage.tensorize(step["axis"], find_intrinsic(step["intrin"]))


_STAGE_OPERATORS: dict[str, Callable[..., None]] = {
    "split": _split,
    "tile": _tile,
    "fuse": _fuse,
    "reorder": _reorder,
    "unroll": _unroll,
    "bind": _bind,
    "compute_at": _compute_at,
    "set_scope": _set_scope,
    "tensorize": _tensorize,
}

"""Phases of a tensor: elements at a fixed distance along one dimension, see ``Schedule.split_phases``."""

from collections.abc import Iterable

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear_expressions import Linear, linear
from accel.compiler.expr.scalar_expressions import Expr, Read, format_expr, reads
from accel.compiler.expr.tensor_expressions import Tensor


def _phase_of(node: Expr, source: Tensor, d: int, step: int) -> tuple[int, Expr] | None:
    """Return the phase that a read always hits and its index there, or None if the phase varies."""
    assert isinstance(node, Read)
    form = linear(node.indices[d])
    if any(factor % step for _, factor in form.terms):
        return None
    number = form.constant % step
    terms = tuple((atom, factor // step) for atom, factor in form.terms)
    return number, Linear((form.constant - number) // step, terms).expr()


def phases_read(source: Tensor, bodies: Iterable[tuple[str, Expr]], d: int, step: int) -> list[int]:
    found = set()
    for name, body in bodies:
        for read in reads(body):
            if read.tensor is source:
                phase = _phase_of(read, source, d, step)
                if phase is None:
                    raise ScheduleError(
                        f"{name} reads {format_expr(read)}; that may be in any of {step} phases"
                    )
                found.add(phase[0])
    return sorted(found)


def phase_element(node: Expr, source: Tensor, d: int, step: int, phases: dict[int, Tensor]) -> Expr | None:
    if not isinstance(node, Read) or node.tensor is not source:
        return None
    phase = _phase_of(node, source, d, step)
    assert phase is not None
    return phases[phase[0]][(*node.indices[:d], phase[1], *node.indices[d + 1 :])]

"""The passes of the compiler over nests, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from accel.compiler.nest.fold import fold_bias
from accel.compiler.nest.keep import lower_kept
from accel.compiler.nest.nest import Nest
from accel.compiler.nest.tensorize import tensorize
from accel.compiler.nest.threads import lower_threads
from accel.compiler.nest.verify import check_nest
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.emitters import overwrites

VERIFIES = False
"""Whether the nest is verified behind every pass, as tests have it."""


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """A schedule on its way to instructions.

    Attributes:
        schedule: what is compiled.
        fold: whether reset and bias are to be one pass over the accumulators; no longer, once a constant has
            turned out to be beyond what that can express.
        constants: values of inputs that are known.
        nest: what the passes so far have made.
    """

    schedule: Schedule
    fold: bool = True
    constants: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    nest: Nest = field(default_factory=lambda: Nest(inputs=(), outputs=(), locals=(), body=()))


@dataclass(frozen=True, kw_only=True)
class NestPass:
    """One pass.

    Attributes:
        name: of what comes out of it, as ``accel show --stage`` knows it.
        run: the pass.
        threads: whether it leaves loops over virtual threads.
    """

    name: str
    run: Callable[[Compilation], Compilation]
    threads: bool = True


def _tensorized(compilation: Compilation) -> Compilation:
    return replace(compilation, nest=tensorize(compilation.schedule))


def _folded(compilation: Compilation) -> Compilation:
    """Reset and bias in one, unless a bias that is known is beyond that, or there is no reset to be saved."""
    scopes = [buffer.scope for buffer in compilation.nest.locals if buffer.scope is not None]
    if not compilation.fold or any(overwrites(scope.config) for scope in scopes):
        return replace(compilation, fold=False)
    folded, known = fold_bias(compilation.nest), compilation.constants
    if all(p.accepts(known[b.name]) for b, p in folded.prepared.items() if b.name in known):
        return replace(compilation, nest=folded)
    return replace(compilation, fold=False)


def _threaded(compilation: Compilation) -> Compilation:
    return replace(compilation, nest=lower_threads(lower_kept(compilation.nest)))


PASSES = (
    NestPass(name="tensorized", run=_tensorized),
    NestPass(name="folded", run=_folded),
    NestPass(name="threads", run=_threaded, threads=False),
)


def lowered(compilation: Compilation, *, to: str | None = None) -> Compilation:
    """After all passes, or after those up to the one named ``to``.

    Raises:
        ScheduleError, TensorizeError: a pass finds no meaning for the schedule.
    """
    for one in PASSES:
        compilation = one.run(compilation)
        if VERIFIES:
            check_nest(compilation.nest, threads=one.threads)
        if one.name == to:
            break
    return compilation

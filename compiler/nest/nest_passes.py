"""The compiler's passes over nests, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt
from msgspec import Struct, field

from accel.base.records import replace
from accel.compiler.nest.fold_bias import fold_bias
from accel.compiler.nest.nest import Nest
from accel.compiler.nest.nest_verifier import verify_nest
from accel.compiler.nest.resident_buffers import lower_residency
from accel.compiler.nest.tensorize import tensorize
from accel.compiler.nest.virtual_threads import lower_threads
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.builtin_emitters import overwrites

VERIFY_AFTER_PASSES = False
"""Tests turn it on."""


class Compilation(Struct, frozen=True, kw_only=True):
    """A schedule during compilation, and the nest after the passes so far."""

    schedule: Schedule
    folds_bias: bool = True
    constants: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    nest: Nest = field(default_factory=lambda: Nest(inputs=(), outputs=(), locals=(), body=()))


class NestPass(Struct, frozen=True, kw_only=True):
    """One pass. ``accel show --stage`` uses the name of its result.

    Attributes:
        has_vthreads: whether loops over virtual threads remain after it.
    """

    name: str
    run: Callable[[Compilation], Compilation]
    has_vthreads: bool = True


def _tensorize(compilation: Compilation) -> Compilation:
    return replace(compilation, nest=tensorize(compilation.schedule))


def _fold_bias(compilation: Compilation) -> Compilation:
    """Fold reset and bias, unless a known bias is out of range or there is no reset to save."""
    scopes = [buffer.scope for buffer in compilation.nest.locals if buffer.scope is not None]
    if not compilation.folds_bias or any(overwrites(scope.config) for scope in scopes):
        return replace(compilation, folds_bias=False)
    folded, known = fold_bias(compilation.nest), compilation.constants
    if all(p.accepts(known[b.name]) for b, p in folded.preparations.items() if b.name in known):
        return replace(compilation, nest=folded)
    return replace(compilation, folds_bias=False)


def _lower_threads(compilation: Compilation) -> Compilation:
    return replace(compilation, nest=lower_threads(lower_residency(compilation.nest)))


PASSES = (
    NestPass(name="tensorized", run=_tensorize),
    NestPass(name="folded", run=_fold_bias),
    NestPass(name="threads", run=_lower_threads, has_vthreads=False),
)


def run_passes(compilation: Compilation, *, to: str | None = None) -> Compilation:
    for one in PASSES:
        compilation = one.run(compilation)
        if VERIFY_AFTER_PASSES:
            verify_nest(compilation.nest, allows_vthreads=one.has_vthreads)
        if one.name == to:
            break
    return compilation

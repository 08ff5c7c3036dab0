"""Samplers choose the next machines. Optuna (extra ``explore``) implements all except one."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Protocol

from accel.base.errors import SweepError, nearest
from accel.base.optional_extras import not_installed
from accel.base.run_choices import EXHAUSTIVE, SAMPLERS
from accel.explore.objectives import Objective
from accel.explore.search_space import Domain, Space, Values

_MAX_LISTED = 200_000
"""Largest space that ``exhaustive`` and ``grid`` accept."""
_POPULATION = 16
"""Generation of ``nsga2``, and batch of other samplers."""
_TPE_BATCH = 8


class Proposal(Protocol):
    @property
    def point(self) -> Values: ...

    def tell(self, losses: Sequence[float] | None) -> None:
        """Tell the point's losses, or None if infeasible or failed."""


class Sampler(Protocol):
    """Proposes points. Equal results in equal order give equal proposals.

    Attributes:
        batch: proposals before the first result is known.
    """

    batch: int

    def propose(self) -> Proposal | None:
        """Return the next point, or None at the end."""


class _Listed:
    def __init__(self, point: Values) -> None:
        self.point = point

    def tell(self, losses: Sequence[float] | None) -> None:
        """Ignore the result."""


class ExhaustiveSampler:
    batch = _POPULATION

    def __init__(self, space: Space) -> None:
        _check_listed(EXHAUSTIVE, space)
        self._points: Iterator[Values] = space.points()

    def propose(self) -> _Listed | None:
        point = next(self._points, None)
        return None if point is None else _Listed(point)


class _Asked:
    def __init__(self, study: Any, trial: Any, point: Values) -> None:
        self._study, self._trial = study, trial
        self.point = point

    def tell(self, losses: Sequence[float] | None) -> None:
        from optuna.trial import TrialState  # slow to import

        if losses is None:
            self._study.tell(self._trial, state=TrialState.FAIL)
        else:
            self._study.tell(self._trial, list(losses))


class OptunaSampler:
    """A sampler of Optuna.

    Integers are positions in a field's values, so that neighbours are close. Unordered fields are categories.
    """

    def __init__(self, space: Space, objectives: Sequence[Objective], name: str, seed: int) -> None:
        optuna = _import_optuna()
        self.batch = _TPE_BATCH if name == "tpe" else _POPULATION
        self._space = space
        self._distributions = {field: _distribution(domain) for field, domain in space.domains.items()}
        self._left = space.size if name == "grid" else None
        if name == "grid":
            _check_listed(name, space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = _SAMPLERS[name](optuna, space, seed)
        self._study = optuna.create_study(directions=["minimize"] * len(objectives), sampler=sampler)

    def propose(self) -> _Asked | None:
        if self._left is not None:
            if self._left == 0:
                return None
            self._left -= 1
        trial = self._study.ask(self._distributions)
        pairs = self._space.domains.items()
        point = tuple(
            domain.values[trial.params[field]] if domain.is_ordered else trial.params[field]
            for field, domain in pairs
        )
        return _Asked(self._study, trial, point)


def _distribution(domain: Domain) -> Any:
    from optuna import distributions  # slow to import

    if domain.is_ordered:
        return distributions.IntDistribution(0, len(domain.values) - 1)
    return distributions.CategoricalDistribution(domain.values)


def _grid(optuna: Any, space: Space, seed: int) -> Any:
    positions = {
        field: list(range(len(domain.values))) if domain.is_ordered else list(domain.values)
        for field, domain in space.domains.items()
    }
    return optuna.samplers.GridSampler(positions, seed=seed)


_SAMPLERS: dict[str, Callable[[Any, Space, int], Any]] = {
    "nsga2": lambda optuna, _space, seed: optuna.samplers.NSGAIISampler(
        population_size=_POPULATION, seed=seed
    ),
    "tpe": lambda optuna, _space, seed: optuna.samplers.TPESampler(
        seed=seed, multivariate=True, constant_liar=True
    ),
    "random": lambda optuna, _space, seed: optuna.samplers.RandomSampler(seed=seed),
    "grid": _grid,
}


def make_sampler(name: str, space: Space, objectives: Sequence[Objective], seed: int) -> Sampler:
    """Return a sampler by name.

    Raises:
        SweepError: an unknown name, missing Optuna, or a too large space.
    """
    if name not in SAMPLERS:
        raise SweepError(f"the sampler is {name!r}; {nearest(name, SAMPLERS)}")
    if name == EXHAUSTIVE:
        return ExhaustiveSampler(space)
    return OptunaSampler(space, objectives, name, seed)


def check_sampler(name: str) -> None:
    """Raise a SweepError for an unknown sampler or missing package."""
    if name not in SAMPLERS:
        raise SweepError(f"the sampler is {name!r}; {nearest(name, SAMPLERS)}")
    if name != EXHAUSTIVE:
        _import_optuna()


def _check_listed(name: str, space: Space) -> None:
    size = prod(len(domain.values) for domain in space.domains.values())
    if size > _MAX_LISTED:
        raise SweepError(
            f"the space has {size:,} points, and {name} lists all; at most {_MAX_LISTED:,} are listed, so "
            f"take another sampler, as nsga2, or fewer values"
        )


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise SweepError(not_installed("this sampler needs optuna", "explore")) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna

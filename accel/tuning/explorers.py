"""Explorers choose points to measure."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from accel.base.errors import TuningError, nearest
from accel.base.run_choices import EXPLORERS, WITH_RECORDS
from accel.tuning.cost_model import CostModel, Features, Group, check_lightgbm
from accel.tuning.search_space import ENUMERABLE, Point, SearchSpace

_MAX_PREDICTED = 2000
"""Maximum of predicted points if each prediction lowers a schedule."""
_RANDOM_SHARE = 0.125
"""Share of random points, which the cost model also learns from."""
_MAX_REJECTED = 1000
"""Known random points in a row after which a space counts as exhausted."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A measured point.

    Attributes:
        cycles: None if the schedule is invalid.
        error: the message of an invalid schedule.
    """

    point: Point
    cycles: int | None
    error: str | None = None


class Explorer(ABC):
    """Proposes points of a space.

    Args:
        earlier: points of other computations, for cost models.
    """

    uses_trees = False

    def __init__(self, space: SearchSpace, seed: int, earlier: Sequence[Group] = ()) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.earlier = earlier
        self.known: set[Point] = set()

    def propose(self, trials: Sequence[Trial], count: int) -> list[Point]:
        """Return up to ``count`` new points, the most promising first, or none at the end. ``trials`` are all
        measured points."""
        self.known.update(trial.point for trial in trials)
        found = list(dict.fromkeys(self._propose(trials, count)))[:count]
        self.known.update(found)
        return found

    @abstractmethod
    def _propose(self, trials: Sequence[Trial], count: int) -> list[Point]:
        """Return points that are not in :attr:`known`."""

    def random_points(self, count: int) -> list[Point]:
        valid = self.space.valid_points
        if valid is not None and len(valid) - len(self.known) < 4 * count:  # few are left
            rest = [point for point in valid if point not in self.known]
            return [rest[n] for n in self.rng.permutation(len(rest))[:count].tolist()]
        found: dict[Point, None] = {}
        rejected = 0
        while len(found) < count and rejected < _MAX_REJECTED:
            point = self.space.random_point(self.rng)
            if point in self.known or point in found:
                rejected += 1
            else:
                found[point] = None
        return list(found)


class RandomExplorer(Explorer):
    """Draws points without replacement."""

    def _propose(self, trials: Sequence[Trial], count: int) -> list[Point]:
        return self.random_points(count)


class ExhaustiveExplorer(Explorer):
    """Takes valid points in order."""

    def __init__(self, space: SearchSpace, seed: int, earlier: Sequence[Group] = ()) -> None:
        super().__init__(space, seed, earlier)
        valid = space.valid_points
        if valid is None:
            raise TuningError(
                f"the space of {space.name} has {space.size:,} points; exhaustive search takes at most "
                f"{ENUMERABLE:,}, so choose another explorer"
            )
        self._rest = iter(valid)

    def _propose(self, trials: Sequence[Trial], count: int) -> list[Point]:
        found: list[Point] = []
        for point in self._rest:
            if point not in self.known:
                found.append(point)
            if len(found) == count:
                break
        return found


class ModelExplorer(Explorer):
    """Takes points by predicted cycles, the fewest first."""

    def __init__(self, space: SearchSpace, seed: int, earlier: Sequence[Group] = ()) -> None:
        super().__init__(space, seed, earlier)
        valid = space.valid_points
        if valid is None or (len(valid) > _MAX_PREDICTED and not space.predicts_cheaply):
            points = self.random_points(_MAX_PREDICTED)
        else:
            points = valid
        predicted = [(one, point) for point in points if (one := space.predicted(point)) is not None]
        self._ranked = iter([point for _, point in sorted(predicted)])

    def _propose(self, trials: Sequence[Trial], count: int) -> list[Point]:
        found: list[Point] = []
        for point in self._ranked:
            if point not in self.known:
                found.append(point)
            if len(found) == count:
                break
        return found or self.random_points(count)


class LearnedExplorer(Explorer):
    """Searches for high scores of a cost model that learns from trials.

    A round fits the model, and proposes the best found points and some random ones.
    """

    uses_trees = True

    def __init__(self, space: SearchSpace, seed: int, earlier: Sequence[Group] = ()) -> None:
        super().__init__(space, seed, earlier)
        check_lightgbm()
        self._model = CostModel(earlier, seed)
        self._scores: dict[Point, float] = {}

    def _propose(self, trials: Sequence[Trial], count: int) -> list[Point]:
        self._model.fit(self._measured(trials))
        self._scores.clear()
        measured = [trial.point for trial in sorted(trials, key=_rank) if trial.cycles is not None]
        self._search(measured)
        best = sorted(
            (point for point in self._scores if point not in self.known),
            key=lambda point: (-self._scores[point], point),
        )
        drawn = int(self.rng.binomial(count, _RANDOM_SHARE)) if trials else count // 4
        found = best[: count - drawn]
        self.known.update(found)
        return [*found, *self.random_points(count - len(found))]

    @abstractmethod
    def _search(self, measured: Sequence[Point]) -> None:
        """Call :meth:`score` for promising points. The fastest of ``measured`` is first."""

    def score(self, points: Sequence[Point]) -> list[float]:
        """A point whose schedule cannot be lowered has the lowest score."""
        new = [point for point in dict.fromkeys(points) if point not in self._scores]
        features = [self.space.features(point) for point in new]
        known: list[Features] = [one for one in features if one is not None]
        scores = iter(self._model.scores(known).tolist())
        for point, one in zip(new, features, strict=True):
            self._scores[point] = -np.inf if one is None else next(scores)
        return [self._scores[point] for point in points]

    def _measured(self, trials: Sequence[Trial]) -> Group:
        found = []
        for trial in trials:
            features = None if trial.cycles is None else self.space.features(trial.point)
            if features is not None and trial.cycles is not None:
                found.append((features, trial.cycles))
        return found


class AnnealingExplorer(LearnedExplorer):
    """Walks from several points at once. A step to a higher score is always taken, one to a lower score with
    a falling probability."""

    _WALKS = 24
    _STEPS = 24
    _START = 2.0
    """Difference of scores that the first step accepts with a probability of 1 / e."""

    def _search(self, measured: Sequence[Point]) -> None:
        kept = list(measured[: self._WALKS // 2])
        at = [*kept, *(self.space.random_point(self.rng) for _ in range(self._WALKS - len(kept)))]
        scores = self.score(at)
        for step in range(self._STEPS):
            temperature = self._START * (1 - step / self._STEPS)
            moved = [self.space.neighbour(point, self.rng) for point in at]
            new = self.score(moved)
            draws = self.rng.random(len(at))
            for n, draw in enumerate(draws.tolist()):
                if new[n] >= scores[n] or draw < np.exp((new[n] - scores[n]) / temperature):
                    at[n], scores[n] = moved[n], new[n]


class EvolutionExplorer(LearnedExplorer):
    """Breeds generations: a point has values of two earlier points, or differs from one in a knob. Higher
    scores have more descendants."""

    _POPULATION = 64
    _GENERATIONS = 6
    _MUTATED = 0.6

    def _search(self, measured: Sequence[Point]) -> None:
        kept = list(measured[: self._POPULATION // 4])
        drawn = self._POPULATION - len(kept)
        population = [*kept, *(self.space.random_point(self.rng) for _ in range(drawn))]
        self.score(population)
        for _ in range(self._GENERATIONS):
            ranked = sorted(dict.fromkeys(population), key=lambda point: (-self._scores[point], point))
            parents = ranked[: self._POPULATION // 2]
            weights = 1.0 / (1.0 + np.arange(len(parents)))
            chosen = self.rng.choice(len(parents), (self._POPULATION, 2), p=weights / weights.sum())
            children = []
            for a, b in chosen.tolist():
                if self.rng.random() < self._MUTATED:
                    children.append(self.space.neighbour(parents[a], self.rng))
                else:
                    children.append(self.space.crossed(parents[a], parents[b], self.rng))
            self.score(children)
            population = [*parents[: self._POPULATION // 4], *children]


def _rank(trial: Trial) -> float:
    return np.inf if trial.cycles is None else trial.cycles


_EXPLORERS: dict[str, Callable[[SearchSpace, int, Sequence[Group]], Explorer]] = {
    "random": RandomExplorer,
    "exhaustive": ExhaustiveExplorer,
    "model": ModelExplorer,
    "annealing": AnnealingExplorer,
    "evolution": EvolutionExplorer,
}


def make_explorer(name: str, space: SearchSpace, seed: int, earlier: Sequence[Group] = ()) -> Explorer:
    """Return an explorer by name.

    Args:
        earlier: points of other computations, for ``+records``.

    Raises:
        TuningError: unknown name, or missing LightGBM.
    """
    if name not in EXPLORERS:
        raise TuningError(f"the explorer is {name!r}; {nearest(name, EXPLORERS)}")
    make = _EXPLORERS[name.removesuffix(WITH_RECORDS)]
    return make(space, seed, earlier if name.endswith(WITH_RECORDS) else ())

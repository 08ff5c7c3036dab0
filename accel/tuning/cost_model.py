"""A learned cost model.

LightGBM's gradient boosted trees, with its LambdaRank objective, correct the analytical model's ranking.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import TuningError
from accel.base.optional_extras import not_installed

FloatArray = npt.NDArray[np.float64]
Features = dict[str, float]
Group = Sequence[tuple[Features, int]]
"""Features and measured cycles of points of one computation on one machine."""

_MIN_POINTS = 6
_GRADES = 31
"""Relevance grades, from 0 for the slowest points."""
_MAX_GROUP = 2000
"""The trees learn from a group's fastest points and a sample of others. LightGBM takes at most 10,000."""
_BEST_SHARE = 0.5
_PARAMETERS: dict[str, Any] = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 64,
    "label_gain": [grade * grade for grade in range(_GRADES + 1)],
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 3,
    "min_data_in_bin": 1,
    "feature_fraction": 0.7,
    "lambda_l2": 0.01,  # few points have small second derivatives
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
_ROUNDS = 60
_PRIOR_SCALE = 8.0
"""Initial difference of scores for half the predicted cycles."""


def check_lightgbm() -> None:
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        raise TuningError(not_installed("a learned cost model needs lightgbm", "tune")) from None


class CostModel:
    """Ranks points by features. Higher scores are faster."""

    def __init__(self, earlier: Sequence[Group] = (), seed: int = 0) -> None:
        self._earlier = [group for group in earlier if len(group) >= _MIN_POINTS]
        self._names: list[str] = []
        self._seed = seed
        self._trees: Any = None

    def fit(self, measured: Group) -> None:
        groups = [*self._earlier, *([measured] if len(measured) >= _MIN_POINTS else [])]
        if not groups:
            self._trees = None
            return
        import lightgbm  # an extra, and slow to import

        rng = np.random.default_rng(self._seed)
        groups = [_thinned(group, rng) for group in groups]
        self._names = sorted({name for group in groups for features, _ in group for name in features})
        rows = [features for group in groups for features, _ in group]
        labels = np.concatenate([_grades(np.array([cycles for _, cycles in group])) for group in groups])
        data = lightgbm.Dataset(
            self._matrix(rows),
            label=labels,
            group=[len(group) for group in groups],
            init_score=_prior(rows),
        )
        self._trees = lightgbm.train(
            {**_PARAMETERS, "seed": self._seed}, data, num_boost_round=_ROUNDS, keep_training_booster=True
        )

    def scores(self, rows: Sequence[Features]) -> FloatArray:
        prior = _prior(rows)
        if self._trees is None or not rows:
            return prior
        learned: FloatArray = self._trees.predict(self._matrix(rows), num_threads=1)
        return prior + learned

    def _matrix(self, rows: Sequence[Features]) -> FloatArray:
        return np.array([[one.get(name, np.nan) for name in self._names] for one in rows], dtype=np.float64)


def _prior(rows: Sequence[Features]) -> FloatArray:
    return -_PRIOR_SCALE * np.array([one["predicted"] for one in rows], dtype=np.float64)


def _grades(cycles: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The fastest point has the highest grade. Each lower grade is a few percent slower, more among slow
    points."""
    slower = np.log2(cycles / cycles.min())
    grades = _GRADES - np.round(8 * np.log2(1 + 16 * slower))
    found: npt.NDArray[np.int64] = np.maximum(grades, 0).astype(np.int64)
    return found


def _thinned(group: Group, rng: np.random.Generator) -> Group:
    if len(group) <= _MAX_GROUP:
        return group
    ranked = sorted(group, key=lambda one: one[1])
    best = int(_MAX_GROUP * _BEST_SHARE)
    rest = rng.choice(len(ranked) - best, _MAX_GROUP - best, replace=False) + best
    return [*ranked[:best], *(ranked[n] for n in sorted(rest.tolist()))]

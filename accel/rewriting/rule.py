"""Rules of graph rewriting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from accel.base.errors import GraphError
from accel.graph.graph import Graph
from accel.rewriting.pattern import Match, OpPattern, Term

Replacement = Term | Sequence[Term] | None
"""A term for each root of the pattern, or None where the rule does not apply."""


def _holds(match: Match) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Two subgraphs with equal results, bit for bit, for all inputs.

    Attributes:
        name: for example ``transpose-pair``.
        text: what the rule does, in one sentence.
        pattern: the left side. Several patterns must have a tensor in common.
        condition: whether the right side is exact for a match, unless ``replacement`` checks that and returns
            None.
        replacement: returns the right side, with the shape, dtype and quantization of each root.
        simplifies: whether the right side is better on every machine. Such a rule is applied wherever it
            matches, and never leads back to an earlier graph.
        instance: draws a graph in which the pattern may match, on which the rule is checked.
    """

    name: str
    text: str
    pattern: OpPattern | tuple[OpPattern, ...]
    replacement: Callable[[Match], Replacement]
    instance: Callable[[np.random.Generator], Graph]
    condition: Callable[[Match], bool] = _holds
    simplifies: bool = False

    def __post_init__(self) -> None:
        if not callable(self.instance):
            raise GraphError(
                f"rule {self.name!r} has no generator of instances; each rule must have one, to be checked"
            )

    @property
    def roots(self) -> tuple[OpPattern, ...]:
        return self.pattern if isinstance(self.pattern, tuple) else (self.pattern,)

    def terms(self, match: Match) -> tuple[Term, ...] | None:
        """Return the right side.

        Raises:
            GraphError: a result has another shape, dtype or quantization than the root that it replaces.
        """
        if not self.condition(match):
            return None
        found = self.replacement(match)
        if found is None:
            return None
        terms = tuple(found) if isinstance(found, Sequence) else (found,)
        if len(terms) != len(match.roots):
            raise GraphError(
                f"rule {self.name!r} has {len(match.roots)} roots and returns {len(terms)} terms; "
                "it must return one for each"
            )
        for root, term in zip(match.roots, terms, strict=True):
            old, new = root.tensor, term.tensor
            if (old.shape, old.dtype, old.quantization) != (new.shape, new.dtype, new.quantization):
                raise GraphError(
                    f"rule {self.name!r} replaces {old.dtype}{list(old.shape)} by "
                    f"{new.dtype}{list(new.shape)}; shape, dtype and quantization must be equal"
                )
        return terms

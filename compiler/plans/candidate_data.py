"""Candidates as JSON, for the disk cache."""

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from accel.base.records import field_names
from accel.compiler.plans.plan_candidate import Candidate, PlanT, Prediction

_PREDICTED = ("cycles", "compute", "load", "store")


def candidates_to_json(candidates: Sequence[Candidate[Any]]) -> bytes:
    """A list holds the fields of plan and prediction, bytes and rating."""
    if not candidates:
        return b"[]"
    plan_values = attrgetter(*_names(type(candidates[0].plan)))
    predicted = attrgetter(*_PREDICTED)
    rows = [
        (plan_values(one.plan), predicted(one.prediction), one.read_bytes, one.rating) for one in candidates
    ]
    return json.dumps(rows, separators=(",", ":")).encode()


def candidates_from_json(content: bytes, plan_type: type[PlanT]) -> tuple[Candidate[PlanT], ...]:
    """Floats are the same to the last bit."""
    names = _names(plan_type)
    return tuple(
        Candidate(
            plan=plan_type(**dict(zip(names, plan, strict=True))),
            prediction=Prediction(**dict(zip(_PREDICTED, predicted, strict=True))),
            read_bytes=read_bytes,
            rating=rating,
        )
        for plan, predicted, read_bytes, rating in json.loads(content)
    )


def _names(plan_type: type[Any]) -> tuple[str, ...]:
    return tuple(one for one in field_names(plan_type))

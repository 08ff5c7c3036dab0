"""The fields of the studio's form."""

import inspect
from typing import Any

from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_parameters import Parameter
from accel.compiler.operators.operator_registry import OPERATORS
from accel.core.config import NAMED, SPECS
from accel.network.model_files import DEFAULT_MACHINE
from accel.studio.studio_state import StudioState

START = StudioState(
    workload="gemm",
    parameters={"M": 128, "N": 128, "K": 128, "shift": 8},
    machine="gemm8x8",
)
_EXAMPLES: dict[str, dict[str, Any]] = {
    "gemm": dict(START.parameters),
    "dense": {"IC": 256, "OC": 256, "bias": True, "shift": 8},
    "conv2d": {"IC": 64, "H": 28, "W": 28, "OC": 64, "kernel": "3", "padding": "1", "bias": True, "shift": 8},
    "conv2d_transpose": {
        "IC": 32,
        "H": 14,
        "W": 14,
        "OC": 32,
        "kernel": "4",
        "stride": "2",
        "padding": "1",
        "shift": 8,
    },
    "max_pool2d": {"C": 64, "H": 28, "W": 28, "kernel": "2", "stride": "2"},
    "avg_pool2d": {"C": 64, "H": 28, "W": 28, "kernel": "2", "stride": "2"},
    "global_avg_pool2d": {"C": 64, "H": 7, "W": 7},
}


def form_data() -> dict[str, Any]:
    """Return operators with parameters, and machines with fields."""
    return {
        "start": START.to_data(),
        "operators": [_operator(one) for one in OPERATORS.values()],
        "fields": [
            {
                "name": name,
                "kind": spec.kind,
                "unit": spec.unit,
                "doc": spec.doc,
                "low": spec.low,
                "high": spec.high,
                "power": spec.power_of_two,
                "post": spec.post,
            }
            for name, spec in SPECS.items()
        ],
        "machines": {name: config.to_dict() for name, config in NAMED.items()},
        "network_machine": DEFAULT_MACHINE,
    }


def _operator(operator: Operator) -> dict[str, Any]:
    shown = [one for one in operator.parameters if one not in operator.records]
    fields = [field for record in operator.records for field in record.fields]
    return {
        "name": operator.name,
        "summary": operator.summary,
        "example": _EXAMPLES.get(operator.name, {}),
        "parameters": [_parameter(operator, one) for one in shown],
        "quantized": [_parameter(None, one) for one in fields],
    }


def _parameter(operator: Operator | None, one: Parameter) -> dict[str, Any]:
    default = None if operator is None else operator.default_of(one)
    is_required = default is inspect.Parameter.empty
    if is_required or default is None or isinstance(default, bool):
        text = one.default_text
    elif isinstance(default, tuple):
        text = one.kind.separator.join(map(str, default))
    else:
        text = str(default)
    return {
        "name": one.name,
        "kind": one.kind.value,
        "text": one.text,
        "form": one.metavar,
        "needed": is_required,
        "default": text,
    }

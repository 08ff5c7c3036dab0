"""Functions of one float32 variable."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
_Function = Callable[..., Any]

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
"""Defaults of ONNX."""


def _erf(x: Values) -> Values:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _sigmoid(x: Values) -> Any:
    wide = x.astype(np.float64)
    return 1 / (1 + np.exp(-wide))


def _swish(x: Values, alpha: float) -> Any:
    return x * _sigmoid(np.float32(alpha) * x).astype(np.float32)


def _gelu(x: Values, approximate: float) -> Any:
    wide = x.astype(np.float64)
    if approximate:
        return 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    return 0.5 * wide * (1 + _erf(wide / math.sqrt(2)))


def _hard_sigmoid(x: Values, alpha: float, beta: float) -> Any:
    scaled = np.float32(alpha) * x + np.float32(beta)
    return np.clip(scaled, np.float32(0), np.float32(1))


def _elu(x: Values, alpha: float) -> Any:
    return np.where(x < 0, np.float32(alpha) * np.expm1(x.astype(np.float64)), x)


def _selu(x: Values, alpha: float, gamma: float) -> Any:
    return gamma * np.where(x > 0, x, alpha * np.expm1(x.astype(np.float64)))


def _celu(x: Values, alpha: float) -> Any:
    wide = x.astype(np.float64)
    return np.maximum(0, wide) + np.minimum(0, alpha * np.expm1(wide / alpha))


FUNCTIONS: Mapping[str, tuple[_Function, Mapping[str, float]]] = {
    "Abs": (np.abs, {}),
    "Ceil": (np.ceil, {}),
    "Celu": (_celu, {"alpha": 1.0}),
    "Elu": (_elu, {"alpha": 1.0}),
    "Erf": (_erf, {}),
    "Exp": (lambda x: np.exp(x.astype(np.float64)), {}),
    "Floor": (np.floor, {}),
    "Gelu": (_gelu, {"approximate": 0.0}),
    "HardSigmoid": (_hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "HardSwish": (lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5), {}),
    "LeakyRelu": (lambda x, alpha: np.where(x >= 0, x, np.float32(alpha) * x), {"alpha": 0.01}),
    "Log": (lambda x: np.log(x.astype(np.float64)), {}),
    "Mish": (lambda x: x * np.tanh(np.logaddexp(0, x.astype(np.float64))), {}),
    "Neg": (np.negative, {}),
    "Reciprocal": (lambda x: np.float32(1) / x, {}),
    "Round": (np.rint, {}),
    "Rsqrt": (lambda x: 1 / np.sqrt(x.astype(np.float64)), {}),
    "Selu": (_selu, {"alpha": _SELU_ALPHA, "gamma": _SELU_GAMMA}),
    "Sigmoid": (_sigmoid, {}),
    "Sign": (np.sign, {}),
    "Softplus": (lambda x: np.logaddexp(0, x.astype(np.float64)), {}),
    "Softsign": (lambda x: x / (np.float32(1) + np.abs(x)), {}),
    "Sqrt": (np.sqrt, {}),
    "Swish": (_swish, {"alpha": 1.0}),
    "Tanh": (lambda x: np.tanh(x.astype(np.float64)), {}),
    "ThresholdedRelu": (lambda x, alpha: np.where(x > np.float32(alpha), x, np.float32(0)), {"alpha": 1.0}),
}
"""By ONNX name, with the defaults of the parameters."""


def apply_function(function: str, parameters: Mapping[str, float], values: Values) -> Values:
    """Return float32 results, which are NaN or infinite outside of the domain."""
    compute, defaults = FUNCTIONS[function]
    with np.errstate(all="ignore"):
        return np.asarray(compute(values, **{**defaults, **parameters})).astype(np.float32)

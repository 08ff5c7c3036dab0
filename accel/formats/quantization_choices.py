"""Choices of quantization, apart from the quantizer, which is slow to import."""

from typing import Literal

Type = Literal["int8", "uint8"]
Method = Literal["minmax", "entropy", "percentile"]

TYPES: tuple[Type, ...] = ("int8", "uint8")
"""Dtypes of activations."""
METHODS: tuple[Method, ...] = ("minmax", "entropy", "percentile")
"""Calibration methods, which choose the range of a tensor from its values on the data."""

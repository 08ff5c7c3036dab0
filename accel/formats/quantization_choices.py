"""Choices of quantization, without the quantizer, which is slow to import."""

from typing import Literal

Type = Literal["int8", "uint8"]
Method = Literal["minmax", "entropy", "percentile"]

TYPES: tuple[Type, ...] = ("int8", "uint8")
"""Of activations."""
METHODS: tuple[Method, ...] = ("minmax", "entropy", "percentile")
"""They choose a tensor's range from its values."""

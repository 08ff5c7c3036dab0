"""All import rules, also for com.microsoft operators of ONNX Runtime's quantizer."""

from accel.formats import (  # noqa: F401  # they register their rules
    onnx_elementwise_rules,
    onnx_movement_rules,
    onnx_pooling_rules,
    onnx_product_rules,
    onnx_quantize_rules,
    onnx_resampling_rules,
)
from accel.formats.onnx_constant_folding import FOLDED
from accel.formats.onnx_foreign import import_foreign
from accel.formats.onnx_rules import RULES

__all__ = ["RULES"]


for _kind in FOLDED:
    RULES.setdefault(("", _kind), import_foreign)

"""All import rules: each ONNX operator, and the com.microsoft operators of ONNX Runtime's quantizer."""

from accel.base.errors import GraphError
from accel.formats import (  # noqa: F401  # they register their rules
    onnx_elementwise_rules,
    onnx_movement_rules,
    onnx_pooling_rules,
    onnx_product_rules,
    onnx_quantize_rules,
)
from accel.formats.onnx_constant_folding import FOLDED
from accel.formats.onnx_file import FileNode
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_rules import RULES

__all__ = ["RULES"]


def _constants_only(importer: Importer, node: FileNode) -> None:
    unknown = next(name for name in node.inputs if name and importer.array(name) is None)
    raise GraphError(
        f"its input {unknown!r} is only known at run time; {node.kind} is supported on constants only"
    )


for _kind in FOLDED:
    RULES.setdefault(("", _kind), _constants_only)

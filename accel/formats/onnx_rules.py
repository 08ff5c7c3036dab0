"""Registry of import rules: the function that imports each ONNX operator."""

from collections.abc import Callable

from accel.formats.onnx_file import FileNode
from accel.formats.onnx_importer import Importer

Rule = Callable[[Importer, FileNode], None]
RULES: dict[tuple[str, str], Rule] = {}
"""The rule for each (domain, operator name). The modules ``onnx_*_rules`` add to it when they are
imported."""


def rule(*kinds: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register a function as the import rule of operators.

    Args:
        domain: the operators' domain, or empty for ONNX's own.
    """

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[domain, kind] = function
        return function

    return register

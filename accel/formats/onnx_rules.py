"""The import rules of ONNX operators."""

from collections.abc import Callable

from accel.formats.onnx_file import FileNode
from accel.formats.onnx_importer import Importer

Rule = Callable[[Importer, FileNode], None]
RULES: dict[tuple[str, str], Rule] = {}
"""By domain and operator. The modules ``onnx_*_rules`` add to it."""


def rule(*kinds: str, domain: str = "") -> Callable[[Rule], Rule]:
    """The empty domain is ONNX's."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[domain, kind] = function
        return function

    return register

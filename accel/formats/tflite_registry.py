"""The import rules of TensorFlow Lite's operators."""

from collections.abc import Callable

from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_importer import TfliteImporter

Rule = Callable[[TfliteImporter, FileOperator], None]
RULES: dict[str, tuple[int, Rule]] = {}
"""Least number of inputs, and the importing function, by operator."""


def rule(least: int, *kinds: str) -> Callable[[Rule], Rule]:
    """Register the rule of operators with at least this many inputs."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = (least, function)
        return function

    return register

"""The import rules of TensorFlow Lite's operators."""

from collections.abc import Callable

from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_importer import TfliteImporter

Rule = Callable[[TfliteImporter, FileOperator], None]
RULES: dict[str, tuple[int, Rule]] = {}


def rule(least: int, *kinds: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = (least, function)
        return function

    return register

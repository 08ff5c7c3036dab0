"""Files of models, and their default machine."""

import os

DEFAULT_MACHINE = "vta-npu"
_TFLITE_SUFFIX = ".tflite"
_SUFFIXES = (".onnx", _TFLITE_SUFFIX)


def is_tflite(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).lower().endswith(_TFLITE_SUFFIX)


def is_model(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).lower().endswith(_SUFFIXES)

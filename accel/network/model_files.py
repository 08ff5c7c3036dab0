import os

DEFAULT_MACHINE = "vta-npu"
_TFLITE_SUFFIX = ".tflite"
_SUFFIXES = (".onnx", _TFLITE_SUFFIX)


def is_tflite(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).lower().endswith(_TFLITE_SUFFIX)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file name is that of an ONNX or TensorFlow Lite model."""
    return os.fspath(path).lower().endswith(_SUFFIXES)

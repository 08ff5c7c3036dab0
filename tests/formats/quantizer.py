"""ONNX Runtime's own quantizer, run in memory and without messages."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.formats.runtime import Array, onnx

quantization = pytest.importorskip("onnxruntime.quantization", reason="onnxruntime comes with the extra onnx")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Settings of the quantizer.

    Attributes:
        form: QOperator or QDQ.
        data, weights: types of activations and weights, QInt8 or QUInt8.
        per_channel: whether each channel of weights has its own scale.
        reduce_range: whether weights have 7 bits.
        symmetric_data, symmetric_weights: whether zero points are in the middle. None: the quantizer decides.
    """

    form: str
    data: str
    weights: str
    per_channel: bool
    reduce_range: bool = False
    symmetric_data: bool | None = None
    symmetric_weights: bool | None = None

    def __str__(self) -> str:
        words = [self.form, f"data {self.data}", f"weights {self.weights}"]
        for name in ("per_channel", "reduce_range", "symmetric_data", "symmetric_weights"):
            if getattr(self, name):
                words.append(name.replace("_", " "))
        return ", ".join(words)


class _Samples(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
    def __init__(self, samples: Sequence[Mapping[str, Array]]) -> None:
        self._left = iter(samples)

    def get_next(self) -> Mapping[str, Array] | None:
        return next(self._left, None)


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def quantize(content: bytes, samples: Sequence[Mapping[str, Array]], setting: Setting) -> bytes:
    """Quantize a float model with these calibration inputs. Errors of the quantizer are not caught."""
    chosen = {"ActivationSymmetric": setting.symmetric_data, "WeightSymmetric": setting.symmetric_weights}
    with TemporaryDirectory() as folder, _quiet():
        target = Path(folder) / "quantized.onnx"
        quantization.quantize_static(
            onnx.load_model_from_string(content),
            target,
            _Samples(samples),
            quant_format=quantization.QuantFormat[setting.form],
            activation_type=quantization.QuantType[setting.data],
            weight_type=quantization.QuantType[setting.weights],
            per_channel=setting.per_channel,
            reduce_range=setting.reduce_range,
            extra_options={name: value for name, value in chosen.items() if value is not None},
        )
        return target.read_bytes()

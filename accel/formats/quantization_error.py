"""The error of quantization."""

import math

import numpy as np
from msgspec import Struct

from accel.graph.graph_tensor import Array


class OutputError(Struct, frozen=True, kw_only=True):
    """The error of one tensor over all samples.

    Attributes:
        largest, mean: absolute difference from the float network.
        snr: power of the float network's values divided by that of the differences, in dB, or infinite.
        agreement: share of rows with the same argmax, for tensors of rank 2.
    """

    name: str
    values: int
    largest: float
    mean: float
    snr: float
    agreement: float | None


class ErrorTally:
    """Accumulates the error of one tensor."""

    def __init__(self) -> None:
        self.values = self.rows = self.agreeing = 0
        self.largest = self.absolute = self.noise = self.signal = 0.0
        self.has_rows = True

    def add(self, wanted: Array, found: Array) -> None:
        exact = wanted.astype(np.float64)
        difference = np.abs(found.astype(np.float64).reshape(exact.shape) - exact)
        self.values += exact.size
        self.largest = max(self.largest, float(difference.max(initial=0)))
        self.absolute += float(difference.sum())
        self.noise += float((difference**2).sum())
        self.signal += float((exact**2).sum())
        self.has_rows = self.has_rows and exact.ndim == 2 and exact.shape[1] > 1
        if self.has_rows:
            self.rows += len(exact)
            self.agreeing += int((exact.argmax(1) == found.reshape(exact.shape).argmax(1)).sum())

    def error(self, name: str) -> OutputError:
        snr = math.inf
        if self.noise:
            snr = 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf
        return OutputError(
            name=name,
            values=self.values,
            largest=self.largest,
            mean=self.absolute / self.values if self.values else 0.0,
            snr=snr,
            agreement=self.agreeing / self.rows if self.has_rows and self.rows else None,
        )

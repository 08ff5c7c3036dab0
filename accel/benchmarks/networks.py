"""Layers of well-known networks, and matrix products, to measure a machine by.

Every layer ends with bias, shift and saturation to 0..127, as a quantized network's do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accel.compiler.operators.registry import make_workload
from accel.compiler.ops.workload import Workload

SHIFT = 8
"""Bits that sums are shifted right by."""
_CLIP = (0, 127)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A workload, and how often a network has it.

    Attributes:
        name: what the layer is known by.
        repeats: occurrences.
        operator: the workload's name, see :data:`~accel.compiler.operators.registry.WORKLOADS`.
        parameters: of the workload.
    """

    name: str
    repeats: int
    operator: str
    parameters: Mapping[str, Any]

    def workload(self) -> Workload:
        """The computation."""
        return make_workload(self.operator, self.parameters)


def _conv(
    name: str, H: int, IC: int, OC: int, kernel: int, stride: int, repeats: int, groups: int = 1
) -> Layer:
    """A convolution of H x H inputs that are padded such that the kernel's centre goes over all of them."""
    parameters = {
        "N": 1,
        "IC": IC,
        "H": H,
        "W": H,
        "OC": OC,
        "kernel": kernel,
        "stride": stride,
        "padding": kernel // 2,
        "bias": True,
        "shift": SHIFT,
        "clip": _CLIP,
    }
    if groups != 1:
        parameters["groups"] = groups
    return Layer(name=name, repeats=repeats, operator="conv2d", parameters=parameters)


def _dense(name: str, IC: int, OC: int) -> Layer:
    parameters = {"N": 1, "IC": IC, "OC": OC, "bias": True, "shift": SHIFT, "clip": _CLIP}
    return Layer(name=name, repeats=1, operator="dense", parameters=parameters)


def _gemm(M: int, N: int, K: int) -> Layer:
    parameters = {"M": M, "N": N, "K": K, "bias": True, "shift": SHIFT, "relu": True}
    return Layer(name=f"{M} x {N} x {K}", repeats=1, operator="gemm", parameters=parameters)


def _separable(number: str, H: int, IC: int, OC: int, stride: int, repeats: int = 1) -> tuple[Layer, Layer]:
    """MobileNet's pair: each channel by itself, then all of them at each pixel."""
    return (
        _conv(f"dw{number}", H, IC, IC, 3, stride, repeats, groups=IC),
        _conv(f"pw{number}", H // stride, IC, OC, 1, 1, repeats),
    )


NETWORKS: dict[str, tuple[Layer, ...]] = {
    "resnet18": (
        _conv("C2", 56, 64, 64, 3, 1, 4),
        _conv("C3", 56, 64, 128, 3, 2, 1),
        _conv("C4", 56, 64, 128, 1, 2, 1),
        _conv("C5", 28, 128, 128, 3, 1, 3),
        _conv("C6", 28, 128, 256, 3, 2, 1),
        _conv("C7", 28, 128, 256, 1, 2, 1),
        _conv("C8", 14, 256, 256, 3, 1, 3),
        _conv("C9", 14, 256, 512, 3, 2, 1),
        _conv("C10", 14, 256, 512, 1, 2, 1),
        _conv("C11", 7, 512, 512, 3, 1, 3),
    ),
    "mobilenet": (
        _conv("conv1", 224, 3, 32, 3, 2, 1),
        *_separable("1", 112, 32, 64, 1),
        *_separable("2", 112, 64, 128, 2),
        *_separable("3", 56, 128, 128, 1),
        *_separable("4", 56, 128, 256, 2),
        *_separable("5", 28, 256, 256, 1),
        *_separable("6", 28, 256, 512, 2),
        *_separable("7", 14, 512, 512, 1, 5),
        *_separable("8", 14, 512, 1024, 2),
        *_separable("9", 7, 1024, 1024, 1),
        _dense("fc", 1024, 1000),
    ),
    "gemm": (
        _gemm(128, 128, 128),
        _gemm(256, 256, 256),
        _gemm(512, 512, 512),
        _gemm(1024, 1024, 1024),
        _gemm(128, 768, 768),
        _gemm(128, 3072, 768),
        _gemm(128, 768, 3072),
        _gemm(3136, 64, 576),
        _gemm(1, 1000, 512),
    ),
}
"""ResNet-18's convolutions as VTA's benchmark names them, MobileNet-v1's layers at full width on 224 x 224
pixels, and products: squares, those of a transformer of width 768 on 128 tokens, one as high as a
convolution's, and one of a single row."""

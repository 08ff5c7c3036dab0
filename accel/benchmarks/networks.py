"""Layers of well-known networks, and matrix products, to measure a machine by.

Every layer ends with a bias and, by the *epilogue* ``shift``, a shift and saturation to 0..127; by the
epilogue ``scale``, a scale per channel, a zero point and saturation, as networks that are quantized for int8.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from accel.compiler.operators.registry import make_workload, operator_of
from accel.compiler.ops.quantized import Quantized
from accel.compiler.ops.workload import Workload
from accel.core.config import Config

Epilogue = Literal["scale", "shift"]
EPILOGUES: tuple[Epilogue, ...] = ("scale", "shift")

SHIFT = 8
"""Bits that sums are shifted right by."""
_CLIP = (0, 127)
_SHIFT_PARAMETERS = ("shift", "clip", "relu")
_ZERO, _HIGHEST = -20, 110
"""Of what layers read and write: zero, and what stands for the bound of a ReLU that has one."""
_DEVIATION = 40.0
"""Of results, in steps of their scale, before they are saturated."""
_BYTE_DEVIATION = 73.9
"""Of the values of int8, all of them equally likely."""
_SPREAD = 0.6
"""Of the logarithms of a layer's scales."""


def default_epilogue(config: Config) -> Epilogue:
    """What layers end with on a machine unless something else is asked for."""
    return "scale" if config.post else "shift"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A workload, and how often a network has it.

    Attributes:
        name: what the layer is known by.
        repeats: occurrences.
        operator: the workload's name, see :data:`~accel.compiler.operators.registry.WORKLOADS`.
        parameters: of the workload.
        quantized: what follows the sums, in place of a shift.
        entry: whether its input enters from the host, which may pack it for the layer; other layers take what
            their neighbours have written.
    """

    name: str
    repeats: int
    operator: str
    parameters: Mapping[str, Any]
    quantized: Quantized | None = None
    entry: bool = False

    def workload(self) -> Workload:
        """The computation."""
        if self.quantized is None:
            return make_workload(self.operator, self.parameters)
        operator = operator_of(self.operator)
        return operator.make(**operator.arguments(self.parameters), quantized=self.quantized)

    @property
    def all_parameters(self) -> dict[str, Any]:
        """Those of the workload, as plain data."""
        return dict(self.parameters) | ({} if self.quantized is None else self.quantized.to_dict())

    def scaled(self) -> "Layer":
        """The same layer with the epilogue ``scale``.

        Scales differ from channel to channel, by numbers that only depend on the layer's name, and are such
        that results of random operands spread over int8. Zero points are those of activations behind a ReLU.
        """
        if self.operator in _POOLS:
            return self._scaled_pool()
        channels, length = self._sums()
        typical = _DEVIATION / (_BYTE_DEVIATION**2 * np.sqrt(length))
        rng = np.random.default_rng(list(self.name.encode()))
        scale = (typical * np.exp(rng.normal(0.0, _SPREAD, channels))).astype(np.float32)
        quantized = Quantized(scale=scale, input_zero=_ZERO, output_zero=_ZERO, clip=(_ZERO, _HIGHEST))
        kept = {key: value for key, value in self.parameters.items() if key not in _SHIFT_PARAMETERS}
        return replace(self, parameters=kept, quantized=quantized)

    def _scaled_pool(self) -> "Layer":
        """Means by a scale; maxima are as they are."""
        if self.operator == "max_pool2d":
            return self
        sizes = self.parameters
        taps = sizes["kernel"] ** 2 if "kernel" in sizes else sizes["H"] * sizes["W"]
        scale = float(np.float32(1 / taps))
        return replace(self, quantized=Quantized(scale=scale, input_zero=_ZERO, output_zero=_ZERO))

    def _sums(self) -> tuple[int, int]:
        """Output channels, and products in a sum."""
        sizes = self.parameters
        if self.operator == "gemm":
            return sizes["N"], sizes["K"]
        if self.operator == "dense":
            return sizes["OC"], sizes["IC"]
        return sizes["OC"], sizes["IC"] // sizes.get("groups", 1) * sizes["kernel"] ** 2


_POOLS = ("max_pool2d", "avg_pool2d", "global_avg_pool2d")


def _conv(
    name: str,
    H: int,
    IC: int,
    OC: int,
    kernel: int,
    stride: int,
    repeats: int,
    groups: int = 1,
    entry: bool = False,
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
    return Layer(name=name, repeats=repeats, operator="conv2d", parameters=parameters, entry=entry)


def _pool(name: str, C: int, H: int, kernel: int | None = None, **window: int) -> Layer:
    """Maxima over windows, or means over whole inputs without a kernel."""
    sizes = {"N": 1, "C": C, "H": H, "W": H}
    if kernel is None:
        return Layer(name=name, repeats=1, operator="global_avg_pool2d", parameters=sizes)
    return Layer(name=name, repeats=1, operator="max_pool2d", parameters=sizes | {"kernel": kernel} | window)


def _dense(name: str, IC: int, OC: int) -> Layer:
    parameters = {"N": 1, "IC": IC, "OC": OC, "bias": True, "shift": SHIFT, "clip": _CLIP}
    return Layer(name=name, repeats=1, operator="dense", parameters=parameters)


def _gemm(M: int, N: int, K: int, repeats: int = 1) -> Layer:
    parameters = {"M": M, "N": N, "K": K, "bias": True, "shift": SHIFT, "relu": True}
    return Layer(name=f"{M} x {N} x {K}", repeats=repeats, operator="gemm", parameters=parameters)


def _separable(number: str, H: int, IC: int, OC: int, stride: int, repeats: int = 1) -> tuple[Layer, Layer]:
    """MobileNet's pair: each channel by itself, then all of them at each pixel."""
    return (
        _conv(f"dw{number}", H, IC, IC, 3, stride, repeats, groups=IC),
        _conv(f"pw{number}", H // stride, IC, OC, 1, 1, repeats),
    )


def _bottlenecks(number: int, H: int, IC: int, width: int, stride: int, count: int) -> Iterator[Layer]:
    """A stage of ResNet-50: 1x1 down to a width, 3x3, 1x1 up to four times that, and a shortcut; the stride
    is in the 3x3 of the first block, as today's implementations have it."""
    out, inner = 4 * width, H // stride
    yield _conv(f"s{number} first", H, IC, width, 1, 1, 1)
    yield _conv(f"s{number} down", inner, out, width, 1, 1, count - 1)
    if stride > 1:
        yield _conv(f"s{number} 3x3 first", H, width, width, 3, stride, 1)
    yield _conv(f"s{number} 3x3", inner, width, width, 3, 1, count - (stride > 1))
    yield _conv(f"s{number} up", inner, width, out, 1, 1, count)
    yield _conv(f"s{number} shortcut", H, IC, out, 1, stride, 1)


def _inverted() -> Iterator[Layer]:
    """The blocks of MobileNet-v2: 1x1 up, depthwise, 1x1 down; equal layers are counted."""
    H, IC = 112, 32
    counted: Counter[tuple[int, int, int, int, int, int]] = Counter()
    for expansion, OC, repeats, first in MOBILENET_V2:
        for stride in (first, *(1,) * (repeats - 1)):
            wide = IC * expansion
            if expansion > 1:
                counted[H, IC, wide, 1, 1, 1] += 1
            counted[H, wide, wide, 3, stride, wide] += 1
            H //= stride
            counted[H, wide, OC, 1, 1, 1] += 1
            IC = OC
    for (size, inputs, outputs, kernel, stride, groups), repeats in counted.items():
        kind = "dw" if groups > 1 else "pw"
        name = f"{kind} {inputs}-{outputs} {size}{'/2' if stride > 1 else ''}"
        yield _conv(name, size, inputs, outputs, kernel, stride, repeats, groups)


MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks and stride of the first one."""
_FIRST = _conv("C1", 224, 3, 64, 7, 2, 1, entry=True)

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
        _conv("conv1", 224, 3, 32, 3, 2, 1, entry=True),
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
    "resnet18-first": (_FIRST,),
    "resnet50": (
        _FIRST,
        _pool("maximum", 64, 112, 3, stride=2, padding=1),
        *_bottlenecks(1, 56, 64, 64, 1, 3),
        *_bottlenecks(2, 56, 256, 128, 2, 4),
        *_bottlenecks(3, 28, 512, 256, 2, 6),
        *_bottlenecks(4, 14, 1024, 512, 2, 3),
        _pool("mean", 2048, 7),
        _dense("fc", 2048, 1000),
    ),
    "mobilenet-v2": (
        _conv("conv1", 224, 3, 32, 3, 2, 1, entry=True),
        *_inverted(),
        _conv("last", 7, 320, 1280, 1, 1, 1),
        _pool("mean", 1280, 7),
        _dense("fc", 1280, 1000),
    ),
    "bert-base": (
        _gemm(128, 768, 768, 48),
        _gemm(128, 3072, 768, 12),
        _gemm(128, 768, 3072, 12),
        _gemm(128, 128, 64, 144),
        _gemm(128, 64, 128, 144),
    ),
    "pools": (
        _pool("3x3/2 64", 64, 112, 3, stride=2, padding=1),
        _pool("2x2/2 64", 64, 112, 2, stride=2),
        _pool("3x3/1 256", 256, 28, 3, stride=1, padding=1),
        _pool("mean 512", 512, 7),
        _pool("mean 2048", 2048, 7),
    ),
}
NETWORKS["resnet18-whole"] = (
    _FIRST,
    _pool("maximum", 64, 112, 3, stride=2, padding=1),
    *NETWORKS["resnet18"],
    _pool("mean", 512, 7),
    _dense("fc", 512, 1000),
)
"""ResNet-18's convolutions as VTA's benchmark names them, MobileNet-v1's layers at full width on 224 x 224
pixels, and products: squares, those of a transformer of width 768 on 128 tokens, one as high as a
convolution's, and one of a single row. ResNet-18's first layer, and the whole of it, without additions;
ResNet-50, whose strides are in its 3x3 convolutions; MobileNet-v2 at full width; the products of BERT-base on
128 tokens; and poolings."""


def layers_of(network: str, epilogue: Epilogue) -> tuple[Layer, ...]:
    """The layers of a network of :data:`NETWORKS` with an epilogue."""
    layers = NETWORKS[network]
    return tuple(one.scaled() for one in layers) if epilogue == "scale" else layers

"""Layers of well-known networks, and matrix products.

``docs/reference/networks.md`` describes the epilogues ``shift`` and ``scale``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.records import replace
from accel.base.run_choices import Epilogue
from accel.compiler.operators.operator_registry import make_workload, operator_of
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.core.config import Config

SHIFT = 8
_CLIP = (0, 127)
_SHIFT_PARAMETERS = ("shift", "clip", "relu")
_ZERO_POINT = -20
_UPPER_BOUND = 110
"""Quantized value of the upper bound of a bounded ReLU."""
_RESULT_DEVIATION = 40.0
"""Standard deviation of results before saturation, in steps of their scale."""
_INT8_DEVIATION = 73.9
"""Standard deviation of int8 values with equal probabilities."""
_LOG_SCALE_DEVIATION = 0.6
"""Standard deviation of logarithms of scales."""


def default_epilogue(config: Config) -> Epilogue:
    return "scale" if config.post else "shift"


class Layer(Struct, frozen=True, kw_only=True):
    """A workload, and its repetitions.

    Attributes:
        entry: whether the host packs its input. Other inputs have the layout of the previous layer.
    """

    name: str
    repeats: int
    operator: str
    parameters: Mapping[str, Any]
    quantized: Quantized | None = None
    entry: bool = False

    def workload(self) -> Workload:
        if self.quantized is None:
            return make_workload(self.operator, self.parameters)
        operator = operator_of(self.operator)
        return operator.make(**operator.arguments(self.parameters), quantized=self.quantized)

    @property
    def all_parameters(self) -> dict[str, Any]:
        return dict(self.parameters) | ({} if self.quantized is None else self.quantized.to_dict())

    def scaled(self) -> "Layer":
        """Use the epilogue ``scale``.

        Scales are random by channel, with the layer's name as seed. Results of random operands spread over
        int8.
        """
        if self.operator in _POOLS:
            return self._scaled_pool()
        channels, length = self._sums()
        typical_scale = _RESULT_DEVIATION / (_INT8_DEVIATION**2 * np.sqrt(length))
        rng = np.random.default_rng(list(self.name.encode()))
        scale = (typical_scale * np.exp(rng.normal(0.0, _LOG_SCALE_DEVIATION, channels))).astype(np.float32)
        quantized = Quantized(
            scale=scale, input_zero=_ZERO_POINT, output_zero=_ZERO_POINT, clip=(_ZERO_POINT, _UPPER_BOUND)
        )
        others = {key: value for key, value in self.parameters.items() if key not in _SHIFT_PARAMETERS}
        return replace(self, parameters=others, quantized=quantized)

    def _scaled_pool(self) -> "Layer":
        if self.operator == "max_pool2d":
            return self
        sizes = self.parameters
        taps = sizes["kernel"] ** 2 if "kernel" in sizes else sizes["H"] * sizes["W"]
        scale = float(np.float32(1 / taps))
        return replace(
            self, quantized=Quantized(scale=scale, input_zero=_ZERO_POINT, output_zero=_ZERO_POINT)
        )

    def _sums(self) -> tuple[int, int]:
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
    return (
        _conv(f"dw{number}", H, IC, IC, 3, stride, repeats, groups=IC),
        _conv(f"pw{number}", H // stride, IC, OC, 1, 1, repeats),
    )


def _bottlenecks(number: int, H: int, IC: int, width: int, stride: int, count: int) -> Iterator[Layer]:
    """Yield a stage: 1x1 down, 3x3, 1x1 up to four times the width, and a shortcut."""
    out, inner = 4 * width, H // stride
    yield _conv(f"s{number} first", H, IC, width, 1, 1, 1)
    yield _conv(f"s{number} down", inner, out, width, 1, 1, count - 1)
    if stride > 1:
        yield _conv(f"s{number} 3x3 first", H, width, width, 3, stride, 1)
    yield _conv(f"s{number} 3x3", inner, width, width, 3, 1, count - (stride > 1))
    yield _conv(f"s{number} up", inner, width, out, 1, 1, count)
    yield _conv(f"s{number} shortcut", H, IC, out, 1, stride, 1)


def _inverted() -> Iterator[Layer]:
    """Yield blocks: 1x1 up, depthwise, 1x1 down."""
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
"""Expansion, output channels, number of blocks, and stride of the first block."""
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
"""Layers by network.

- ``resnet18``: convolutions except the first, named as in VTA's benchmark. ``resnet18-first`` is the first,
  and ``resnet18-whole`` has all layers except additions.
- ``resnet50``: with strides in the 3x3 convolutions.
- ``mobilenet``, ``mobilenet-v2``: at full width on 224 x 224 pixels.
- ``gemm``: square products, a transformer's of width 768 on 128 tokens, a tall one as of a convolution, and a
  single row.
- ``bert-base``: matrix products for 128 tokens.
"""


def layers_of(network: str, epilogue: Epilogue) -> tuple[Layer, ...]:
    layers = NETWORKS[network]
    return tuple(one.scaled() for one in layers) if epilogue == "scale" else layers

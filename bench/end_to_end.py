"""Run networks on one machine from a float picture to float scores.

    python bench/end_to_end.py [NETWORK ...] [--config NAME] [--format QDQ|QOperator] [--layers] [--json]

The networks are ResNet-18 and MobileNet-v2 on 224 x 224 pixels, with batch normalization folded. Weights are
normally distributed, with a variance that keeps activations in range, times a factor for each channel. ONNX
Runtime quantizes the networks, statically and per channel, and computes the scores that the machine has to
equal. ``--model FILE.onnx`` keeps the model.

Seconds are processor time: ``read`` the file, ``compile`` it, and ``simulate`` a run with its cycles, the
packing of constants and the host's nodes, without any comparison.
"""

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import accel
from accel.benchmarks.benchmark_networks import MOBILENET_V2
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.network.network_program import NetworkProgram

Array = npt.NDArray[Any]

SIZE = 224
CLASSES = 1000
CALIBRATION = 4
"""Number of pictures that the quantizer sees."""
CHANNEL_SPREAD = 0.35
"""Standard deviation of the logarithm of a channel's factor, as batch normalization leaves it."""
BIAS_SPREAD = 0.1
OPSET = 17


class Builder:
    """A float network under construction."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._constants: dict[str, Array] = {}

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: Array) -> str:
        self._constants[name] = values
        return name

    def _weights(self, shape: tuple[int, ...], gain: float) -> tuple[str, str]:
        """Return weights, channels first, and a bias."""
        number = len(self._nodes)
        factor = np.exp(self._rng.normal(0, CHANNEL_SPREAD, shape[0]))
        values = self._rng.normal(0, np.sqrt(gain / np.prod(shape[1:])), shape)
        values *= factor.reshape(-1, *[1] * (len(shape) - 1))
        bias = self._rng.normal(0, BIAS_SPREAD, shape[0])
        return (
            self.constant(f"weight_{number}", values.astype(np.float32)),
            self.constant(f"bias_{number}", bias.astype(np.float32)),
        )

    def conv(
        self,
        data: str,
        shape: tuple[int, int],
        kernel: int,
        stride: int = 1,
        *,
        group: int = 1,
        gain: float = 2,
    ) -> str:
        """Add a convolution that keeps the size, except for its stride.

        Args:
            gain: variance of the result, divided by the mean square of the input.
        """
        weights = self._weights((shape[1], shape[0] // group, kernel, kernel), gain)
        pads = [kernel // 2] * 4
        return self.add(
            "Conv", [data, *weights], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, group=group
        )

    def classes(self, data: str, channels: int) -> str:
        """Add a global average, and a score for each class."""
        flat = self.add("Flatten", [self.add("GlobalAveragePool", [data])])
        return self.add("Gemm", [flat, *self._weights((CLASSES, channels), 1)], transB=1)

    def model(self, name: str, size: int) -> Any:
        self._nodes[-1].output[0] = "scores"
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 3, size, size])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES])],
            [numpy_helper.from_array(values, name) for name, values in self._constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def resnet18(size: int = SIZE, seed: int = 0) -> Any:
    """Return ResNet-18 in float, for pictures of ``size`` pixels squared."""
    net = Builder(seed)
    data = net.add("Relu", [net.conv("picture", (3, 64), 7, 2)])
    data = net.add("MaxPool", [data], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for count, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        inner = net.add("Relu", [net.conv(data, (channels, count), 3, stride)])
        inner = net.conv(inner, (count, count), 3, gain=1)
        if (channels, stride) != (count, 1):
            data = net.conv(data, (channels, count), 1, stride, gain=1)
        data = net.add("Relu", [net.add("Add", [inner, data])])
        channels = count
    net.classes(data, channels)
    return net.model("resnet18", size)


def mobilenet_v2(size: int = SIZE, seed: int = 0) -> Any:
    """Return MobileNet-v2 of width 1 in float."""
    net = Builder(seed)
    bounds = [net.constant("zero", np.float32(0)), net.constant("six", np.float32(6))]

    def relu6(data: str) -> str:
        return net.add("Clip", [data, *bounds])

    data, channels = relu6(net.conv("picture", (3, 32), 3, 2)), 32
    for expansion, count, repetitions, first in MOBILENET_V2:
        for at in range(repetitions):
            stride = first if at == 0 else 1
            wide = channels * expansion
            inner = data if expansion == 1 else relu6(net.conv(data, (channels, wide), 1))
            inner = relu6(net.conv(inner, (wide, wide), 3, stride, group=wide))
            inner = net.conv(inner, (wide, count), 1, gain=1)
            data = net.add("Add", [data, inner]) if (stride, channels) == (1, count) else inner
            channels = count
    net.classes(relu6(net.conv(data, (channels, 1280), 1)), 1280)
    return net.model("mobilenet_v2", size)


NETWORKS = {"resnet18": resnet18, "mobilenet_v2": mobilenet_v2}


def picture(size: int, seed: int) -> Array:
    """Return smooth areas and noise with mean 0 and deviation 1, shape (1, 3, size, size)."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(1, 3, -(-size // 16), -(-size // 16)))
    smooth = coarse.repeat(16, axis=2).repeat(16, axis=3)[:, :, :size, :size]
    values = smooth + 0.3 * rng.normal(size=smooth.shape)
    return np.asarray((values - values.mean()) / values.std(), dtype=np.float32)


class _Pictures(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, size: int) -> None:
        self._left: Iterator[dict[str, Array]] = (
            {"picture": picture(size, seed)} for seed in range(1, CALIBRATION + 1)
        )

    def get_next(self) -> dict[str, Array] | None:
        return next(self._left, None)


def quantized(model: Any, size: int, form: str) -> bytes:
    """Quantize with ONNX Runtime as ``QDQ`` or ``QOperator``: int8 weights per channel, uint8 activations."""
    logging.root.setLevel(logging.ERROR)  # its advice to preprocess is already followed
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
        onnx.save(model, source)
        quantize_static(
            source,
            target,
            _Pictures(size),
            quant_format=QuantFormat[form],
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
        )
        return target.read_bytes()


def measure(name: str, content: bytes, config: str, size: int = SIZE) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.onnx")
        path.write_bytes(content)
        begin = time.process_time()
        network = accel.load_onnx(path)
        read = time.process_time()
        program = network.build(config)
        compiled = time.process_time()
    given = {"picture": picture(size, 0)}
    before = time.process_time()
    result = program.run(given, check=False)
    simulated = time.process_time()
    wanted = run_onnx_runtime(export_onnx(network.graph), given, ["scores"])["scores"]
    return {
        "network": name,
        "config": config,
        "cycles": result.cycles,
        "utilization": result.utilization,
        "macs": program.macs,
        "machine_share": program.machine_share,
        "values": wanted.size,
        "mismatches": int((result.outputs["scores"] != wanted).sum()),
        "programs": len(program.chains),
        "instructions": sum(len(chain.program.instructions) for chain in program.chains),
        "host": _host(program),
        "activation_bytes": [chain.memory.nbytes for chain in program.chains],
        "activation_bound": [chain.memory.bound for chain in program.chains],
        "read_seconds": read - begin,
        "compile_seconds": compiled - read,
        "simulate_seconds": simulated - before,
        "layers": [layer.to_dict() for layer in result.layers],
    }


def _host(program: NetworkProgram) -> list[dict[str, Any]]:
    return [
        {
            "name": part.fused.name,
            "operator": part.fused.operators(),
            "macs": part.fused.macs(program.graph),
            "reason": part.reason,
        }
        for part in program.parts
        if not part.on_machine
    ]


def _print(row: dict[str, Any], layers: bool) -> None:
    print(f"{row['network']} on {row['config']}")
    print(f"  cycles       {row['cycles']:,}, utilization {row['utilization']:.3f} by nominal MACs")
    print(f"  MACs         {row['macs']:,}, {row['machine_share']:.3%} of them on the machine")
    print(f"  scores       {row['mismatches']} of {row['values']} differ from ONNX Runtime's")
    print(f"  programs     {row['programs']} of {row['instructions']:,} instructions")
    print(f"  on the host  {', '.join(one['operator'] for one in row['host'])}")
    print(
        f"  activations  {sum(row['activation_bytes']):,} bytes; none below {sum(row['activation_bound']):,}"
    )
    print(
        f"  processor s  read {row['read_seconds']:.2f}, compile {row['compile_seconds']:.2f}, "
        f"simulate {row['simulate_seconds']:.2f}"
    )
    for layer in row["layers"] if layers else ():
        told = layer["reason"] if layer["cycles"] is None else f"{layer['cycles']:>11,}"
        used = "" if not layer["utilization"] else f"  {layer['utilization']:.3f}"
        print(f"    {layer['name'][:28]:<28} {layer['operator']:<20} {told}{used}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "networks", nargs="*", default=list(NETWORKS), metavar="NETWORK", help=", ".join(NETWORKS)
    )
    parser.add_argument("--config", default="vta-int8")
    parser.add_argument("--format", choices=["QDQ", "QOperator"], default="QOperator")
    parser.add_argument("--size", type=int, default=SIZE, help="height and width of the picture in pixels")
    parser.add_argument("--layers", action="store_true", help="list the layers")
    parser.add_argument("--model", type=Path, help="write the quantized model of a single network")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"{name!r} is not a network; give one of {', '.join(NETWORKS)}")
    if options.model is not None and len(options.networks) != 1:
        parser.error("--model keeps one network's model; name that network")
    found = []
    for name in options.networks:
        content = quantized(NETWORKS[name](options.size), options.size, options.format)
        if options.model is not None:
            options.model.write_bytes(content)
        found.append(measure(name, content, options.config, options.size))
        if not options.json:
            _print(found[-1], options.layers)
    if options.json:
        print(json.dumps({"rows": found}, indent=2))


if __name__ == "__main__":
    main()

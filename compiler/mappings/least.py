"""What a layer takes at least on a machine, whatever its plan.

It is slots, or all that is loaded or stored once, as tensors lie in DRAM, or what the store unit's lanes
finish; before that the first operands are asked for, and behind that the last results are written. What is
loaded again is not counted.
"""

from __future__ import annotations

import numpy as np

from accel.compiler.operators.default import planner_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.arrays import IntArray
from accel.compiler.plans.clocks import fetched_first
from accel.compiler.plans.conv_model import ConvShape, DepthwiseShape
from accel.compiler.plans.pool_model import PoolShape
from accel.compiler.plans.sums import Sums
from accel.compiler.target.emitters import overwrites
from accel.core.config import Config
from accel.core.timing_rules import REQUEST_STARTUP, compute_depth, store_depth


def least_cycles(workload: Workload, config: Config) -> float:
    """Cycles that any program of a workload takes at least.

    Args:
        workload: as the machine carries it out: that of a mapping.
        config: the machine.
    """
    shape = planner_of(workload).features(workload, config)
    outputs, load, slots = (
        _of_pool(shape, config) if isinstance(shape, PoolShape) else _of_sums(shape, config)
    )
    pace = 1.0 if isinstance(shape, PoolShape) else shape.store_pace(config)
    stored = outputs * config.out_element_bytes * pace
    first = fetched_first(config) + REQUEST_STARTUP + config.read_latency
    last = compute_depth(config) + REQUEST_STARTUP + store_depth(config) + config.write_latency
    return first + max(slots, load / config.bus_bytes, stored / config.bus_bytes) + last


def _of_pool(shape: PoolShape, config: Config) -> tuple[int, float, float]:
    """Blocks of the output, bytes that are loaded, and cycles of the compute unit.

    What windows see is brought into accumulators: the compute unit loads it itself, or multiplies it by a
    block of the identity matrix, behind a reset where sums have to be reset.
    """
    slide = shape.slide
    seen = shape.batches * shape.channels
    for way in range(2):
        places = _places(slide.outputs[way], slide.kernel[way], slide.stride[way], slide.dilation[way])
        places = np.unique(places - slide.padding[way])
        seen *= int(((places >= 0) & (places < slide.size[way])).sum())
    height, width = slide.outputs
    loading = config.out_element_bytes / config.bus_bytes
    product = (1 if overwrites(config) else 2) if shape.square else np.inf
    cleared = 0 if overwrites(config) else min(seen, config.acc_depth)
    slots = shape.slots + seen * min(loading, product) - cleared
    return shape.batches * shape.channels * height * width, seen * config.out_element_bytes, slots


def _of_sums(shape: object, config: Config) -> tuple[int, float, float]:
    """The same of sums of products; the first tile's accumulators may be reset before operands are there."""
    assert isinstance(shape, Sums)
    weights = shape.groups * shape.channels * shape.depth * _taps(shape) if shape.weighted else 1
    inputs = shape.groups * (shape.channels if shape.diagonal else shape.depth) * _inputs(shape)
    load = inputs * config.inp_element_bytes + weights * config.wgt_element_bytes
    load += shape.residual * shape.outputs * config.out_element_bytes
    if shape.stored:
        load += shape.biases * config.par_element_bytes
    elif shape.bias:
        load += shape.biases * config.acc_element_bytes
    cleared = shape.resets * min(shape.outputs, config.acc_depth)
    return shape.outputs, load, shape.slots - cleared


def _places(outputs: int, taps: int, stride: int, dilation: int) -> IntArray:
    """Where each tap of each output is, (outputs, taps)."""
    return np.asarray(np.arange(outputs)[:, None] * stride + np.arange(taps) * dilation)


def _inside(shape: ConvShape, way: int) -> tuple[IntArray, IntArray]:
    """Places of the input that each tap of each output meets, and whether there are such."""
    outputs, before = (shape.rows, shape.columns)[way], (shape.top, shape.left)[way]
    taps = shape.kernel[way] + (shape.beside * way if isinstance(shape, DepthwiseShape) else 0)
    stride = shape.stride[way] * (1 if way else shape.skip)
    places = _places(outputs, taps, stride, shape.dilation[way]) - before
    return places, np.asarray((places >= 0) & (places < (shape.height, shape.width)[way]))


def _inputs(shape: Sums) -> int:
    """Elements of a block of the input's channels that outputs meet; of transposed convolutions none are
    counted."""
    if not isinstance(shape, ConvShape):
        return shape.batches * shape.rows * shape.columns
    if shape.is_transposed:
        return 0
    down, across = (
        len(np.unique(places[there])) for places, there in (_inside(shape, way) for way in range(2))
    )
    return shape.batches * down * across


def _taps(shape: Sums) -> int:
    """Taps that some output meets."""
    if not isinstance(shape, ConvShape):
        return shape.taps
    if shape.is_transposed:
        return 0
    if isinstance(shape, DepthwiseShape):
        return int(_inside(shape, 0)[1].any(axis=0).sum())
    down, across = (int(_inside(shape, way)[1].any(axis=0).sum()) for way in range(2))
    return down * across

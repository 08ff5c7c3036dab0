"""A rough estimate of cycles that discards most plans before the pipeline model."""

from __future__ import annotations

import numpy as np

from accel.compiler.plans.operand_traffic import OperandTraffic
from accel.compiler.plans.plan_arrays import FloatArray
from accel.compiler.plans.tile_sizes import TileSizes
from accel.compiler.target.accumulator_pieces import piece_count
from accel.core.config import INSTRUCTION_BYTES
from accel.core.timing_rules import compute_depth

_ISSUE_CYCLES = 8
"""Cycles from the end of a computation to the next LOAD's request, and from data to computation."""


def estimate_cycles(sizes: TileSizes) -> FloatArray:
    """Return the cycles of each plan's busiest resource, plus waits without overlap, the first loads and the
    last store."""
    shape, config, table = sizes.shape, sizes.config, sizes.table
    bus = config.bus_bytes
    latency = config.read_latency + compute_depth(config) + _ISSUE_CYCLES
    traffic = OperandTraffic(sizes)
    load, fetched = _read_beats(sizes, traffic)
    store = sizes.tile_accumulators * (shape.stored_bytes / bus) * shape.store_pace(config)
    sums = shape.slots + shape.residual_in_accumulators * sizes.tiles * (latency + store)
    tile_biases = np.where(sizes.pixels_outer, sizes.tiles, sizes.channel_tiles)
    if shape.has_bias and not shape.epilogue_in_store:
        sums = sums + np.where(sizes.bias_resident, 0, tile_biases) * latency
    waits = latency * np.where(
        traffic.buffered_depth > 0, np.maximum(sizes.tiles, 1), sizes.tiles * sizes.steps
    )
    waits_for_store = (table.threads == 1) | sizes.along_depth
    if shape.reset_passes:  # otherwise the next tile overwrites pieces that are stored
        waits_for_store &= piece_count(sizes.tile_accumulators) == 1
    stored = np.where(waits_for_store, sizes.tiles * (store + config.write_latency), 0)
    chained = (sums + load + waits) / table.threads
    port = load + np.maximum(0, fetched - config.fetch_buffer * INSTRUCTION_BYTES / bus)
    busy = np.maximum(np.maximum(sums, port), np.maximum(chained, sizes.tiles * store)) + stored
    cycles: FloatArray = busy + _first_loads(sizes) + store + 2.0 * latency
    return cycles


def _read_beats(sizes: TileSizes, traffic: OperandTraffic) -> tuple[FloatArray, FloatArray]:
    shape, config, table = sizes.shape, sizes.config, sizes.table
    bus = config.bus_bytes
    load = traffic.read_bytes() / bus
    fetched = sizes.instructions() * (INSTRUCTION_BYTES / bus)
    if shape.epilogue_in_store or shape.residual_product:
        load = load + shape.has_residual * shape.output_blocks * (config.out_element_bytes / bus)
    if shape.epilogue_in_store:
        parameters = sizes.tiles * table.channels * config.par_element_bytes / bus
        fetched = fetched + np.where(sizes.bias_resident, 0, parameters)
    return load, fetched


def _first_loads(sizes: TileSizes) -> FloatArray:
    """Operands are loaded while accumulators are reset."""
    shape, config = sizes.shape, sizes.config
    bus = config.bus_bytes
    inputs = sizes.step_inputs * (config.inp_element_bytes / bus)
    weights = sizes.step_weights * (config.wgt_element_bytes / bus)
    stored_bytes = config.par_element_bytes
    element_bytes = stored_bytes if shape.epilogue_in_store else config.acc_element_bytes * shape.has_bias
    bias = shape.bias_blocks * element_bytes / bus
    resets = sizes.tile_accumulators * shape.reset_passes + sizes.accumulators * shape.folds_bias
    return np.asarray(np.maximum(inputs + weights + bias, resets))

"""The tokens with which layers of a chain wait for one another in the fewest cycles.

Each LOAD waits for the STOREs of its own data, or a layer's first LOAD waits for the previous layer's last
STORE. Both strategies, compared in docs/explain/networks.md, are simulated, and a third one that chooses for
each layer, if that may pay.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from accel.base.forked_tasks import run_tasks
from accel.compiler.codegen.token_insertion import CARRIER, Dependences, Ordered, dependences, with_tokens
from accel.core.config import Config
from accel.core.isa import Finish, Instruction, Load, Memory, OwnMemory, Store, Unit
from accel.network.wait_strategies import EACH, MIXED, ONCE
from accel.proof.shared_dram import SharedDram
from accel.sim.timing.timed_program import InstructionTiming
from accel.sim.timing.timing_model import simulate_timing

TENSOR_MEMORIES = (Memory.INP, Memory.ACC, Memory.ACC_8BIT, OwnMemory.RES)
_UOP_BYTES = 4
_MIN_GAIN = 0.0005
"""The third strategy is simulated only if it saves at least this share of cycles in case each layer takes the
fewer cycles of both others."""
_MANY = 4000
"""Instructions whose simulation is worth a process."""


def insert_fastest_tokens(
    instructions: Sequence[Instruction],
    layers: Sequence[int],
    producers: Sequence[int | None],
    segments: Sequence[tuple[int, bytes]],
    config: Config,
    offset: int,
    jobs: int = 1,
) -> tuple[Ordered, dict[str, int]]:
    """Insert the tokens of the fastest strategy. Return the cycles of each if layers read others' results.

    Args:
        producers: the last layer that each layer reads.
        segments: constants in DRAM, including micro-ops.
        jobs: processes that simulate strategies.
    """
    waits = _waits_per_layer(instructions, layers, producers)
    needed = _dependences(instructions, segments, config)
    if not waits:
        return with_tokens(needed), {}
    timings: dict[int, InstructionTiming] = {}
    """The strategies share most instructions, kept alive by ``needed``."""
    layer_of = np.array(layers, dtype=np.int64)
    finish = Finish()

    def simulate(after: Mapping[int, int]) -> tuple[int, list[int]]:
        """Return all cycles and those of each layer."""
        ordered = with_tokens(needed, after)
        program = [*ordered.program, finish]
        run = simulate_timing(
            program,
            config,
            address=config.mem_base + offset,
            checked=[None] * len(program),  # only the chosen program is checked
            sound=timings,
        )
        sources = ordered.sources
        is_own, last = sources != CARRIER, np.zeros(len(producers), dtype=np.int64)
        np.maximum.at(last, layer_of[sources[is_own]], run.columns.retire[:-1][is_own])
        return run.cycles, np.diff(np.maximum.accumulate(last), prepend=0).tolist()

    strategies: dict[str, Mapping[int, int]] = {ONCE: waits, EACH: {}}
    afters = list(strategies.values())
    processes = jobs if len(layers) > _MANY else 1
    simulated = run_tasks(lambda number: simulate(afters[number]), len(afters), processes, at_once=True)
    cycles = {name: found for name, (found, _) in zip(strategies, simulated, strict=True)}
    pairs = list(zip(*(of_layers for _, of_layers in simulated), strict=True))
    if sum(map(min, pairs)) < min(cycles.values()) * (1 - _MIN_GAIN):
        once_is_faster = [once <= each for once, each in pairs]
        strategies[MIXED] = {load: store for load, store in waits.items() if once_is_faster[layers[load]]}
        cycles[MIXED], _ = simulate(strategies[MIXED])
    fastest = min(cycles, key=lambda name: cycles[name])
    return with_tokens(needed, strategies[fastest]), cycles


def _waits_per_layer(
    instructions: Sequence[Instruction], layers: Sequence[int], producers: Sequence[int | None]
) -> dict[int, int]:
    """Map each layer's first LOAD of a tensor to the last STORE of its producer."""
    last_store: dict[int, int] = {}
    waits: dict[int, int] = {}
    has_loaded: set[int] = set()
    for index, (instruction, layer) in enumerate(zip(instructions, layers, strict=True)):
        producer = producers[layer]
        if isinstance(instruction, Store):
            last_store[layer] = index
        elif (
            isinstance(instruction, Load)
            and instruction.memory in TENSOR_MEMORIES
            and layer not in has_loaded
        ):
            has_loaded.add(layer)
            if producer is not None and instruction.unit is not Unit.STORE:
                waits[index] = last_store[producer]
    return waits


def _dependences(
    instructions: Sequence[Instruction], segments: Sequence[tuple[int, bytes]], config: Config
) -> Dependences:
    size = max((offset + len(data) for offset, data in segments), default=0)
    memory = np.zeros(-(-size // _UOP_BYTES) * _UOP_BYTES, dtype=np.uint8)
    for offset, data in segments:
        memory[offset : offset + len(data)] = np.frombuffer(data, dtype=np.uint8)
    shared = SharedDram(instructions, config)
    return dependences(instructions, config, memory.view("<u4"), shared)

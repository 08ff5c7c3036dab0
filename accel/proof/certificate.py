"""The proof of a program as a file, for a checker that shares no code with the writer.

docs/explain/verification.md has the format.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.base.atomic_files import write_atomically
from accel.core.config import Config
from accel.core.fault_causes import acc_settings, residual_change
from accel.core.instruction_access import AccessSets, Elements, Touch, dram_rows
from accel.core.isa import Instruction, Loops, Transfer, without_tokens
from accel.core.token_rules import WORKERS, Counter, Stepper, queue_depth
from accel.image.image import Image
from accel.proof.certificate_checker import FORMAT, VERSION, digest
from accel.proof.check_program import check_program
from accel.proof.uop_memory import UopMemory

_Access = list[Any]
"""A memory's name, 1 if it is written, and the accessed ranges."""


def certificate(program: Image) -> dict[str, Any]:
    check_program(program).raise_if_bad()
    return claims(program)


def claims(program: Image) -> dict[str, Any]:
    """Return the :func:`certificate` of any program with known micro-ops. A checker refuses those of bad
    ones."""
    instructions, config = program.instructions, program.config
    order, matches, clocks = _run(instructions, config, program.start.tokens)
    table, of = _accesses(program)
    begin = config.mem_base + program.code_offset
    found = {
        "format": FORMAT,
        "version": VERSION,
        "program": hashlib.sha256(program.code).hexdigest(),
        "span": [begin, begin + len(program.code)],
        "queues": {unit.label: queue_depth(unit, config) for unit in WORKERS},
        "serial": bool(config.serial),
        "token_limit": config.token_limit,
        "tokens": list(program.start.tokens),
        "order": None if order == sorted(order) else order,
        "matches": matches,
        "clocks": clocks,
        "accesses": table,
        "accesses_of": of,
    }
    return found | {"digest": digest(found)}


def write_certificate(path: Path, found: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(found, separators=(",", ":")).encode())


def _run(
    instructions: Sequence[Instruction], config: Config, tokens: Sequence[int]
) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """Return the certificate's ``order``, ``matches`` and ``clocks``."""
    stepper = Stepper(instructions, config, tokens=tokens)
    pushed: list[list[int]] = [[-1] * count for count in tokens]
    order: list[int] = []
    matches: list[list[int]] = [[] for _ in Counter]
    clocks: list[list[int]] = [[0, 0, 0] for _ in instructions]
    known: dict[int, list[int]] = {-1: [0, 0, 0]}
    done = {unit: [0, 0, 0] for unit in WORKERS}
    while (index := stepper.first()) is not None:
        unit = stepper.units[index]
        clock = done[unit]
        for counter in stepper.pops[index]:
            pusher = pushed[counter][len(matches[counter])]
            matches[counter].append(pusher)
            clock = [max(pair) for pair in zip(clock, known[pusher], strict=True)]
        clocks[index] = clock
        place = WORKERS.index(unit)
        done[unit] = known[index] = [
            done[unit][place] + 1 if which == place else seen for which, seen in enumerate(clock)
        ]
        for counter in stepper.pushes[index]:
            pushed[counter].append(index)
        order.append(index)
        stepper.run(index)
    return order, matches, clocks


def _accesses(program: Image) -> tuple[list[list[_Access]], list[int]]:
    instructions, config = program.instructions, program.config
    sets, settings = AccessSets(config), acc_settings(instructions)
    uops = UopMemory(config, program.dram(), program.start.contents)
    numbers: dict[object, int] = {}
    table: list[list[_Access]] = []
    of = []
    for index, instruction in enumerate(instructions):
        key: object = None
        touches: Sequence[Touch] = ()
        if isinstance(instruction, Transfer):
            uops.load(instruction)
            key, touches = without_tokens(instruction), sets.transfer(instruction)
        elif isinstance(instruction, Loops) and instruction.uop_count:
            words = uops.words(instruction)
            assert words is not None, "a proven program's micro-ops are known"
            touches = sets.loops(instruction, words, settings[index]).touches
            key = id(touches)  # the sets keep them
        if key not in numbers:
            numbers[key] = len(table)
            scratchpads = [[memory, int(write), *_ranges(elements)] for memory, write, elements in touches]
            table.append(scratchpads + _beyond(instruction, config))
        of.append(numbers[key])
    return table, of


def _ranges(elements: Elements) -> list[int]:
    if isinstance(elements, slice):
        return [elements.start, elements.stop] if elements.start < elements.stop else []
    breaks = np.flatnonzero(np.diff(elements) != 1)
    begins = elements[np.concatenate([[0], breaks + 1])]
    ends = elements[np.concatenate([breaks, [len(elements) - 1]])] + 1
    return np.stack([begins, ends], axis=1).ravel().tolist()


def _beyond(instruction: Instruction, config: Config) -> list[_Access]:
    found: list[_Access] = []
    rows = dram_rows(instruction, config)
    if rows is not None and isinstance(instruction, Transfer):
        found.append(["dram", int(not instruction.FILLS), rows.start, rows.rows, rows.row_bytes, rows.stride])
    change = residual_change(instruction)
    if change:
        found.append(["res", int(change > 0), abs(change)])
    return found

"""The disassembler."""

import json
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from accel.assembly.instruction_comments import Annotator
from accel.assembly.integer_lists import MOST_VALUES, format_integers
from accel.assembly.symbolic_names import PlaceNames, token_label
from accel.core.config import ALU_OPS, NAMED, SPECS, Config
from accel.core.config.alu_ops_field import with_digests
from accel.core.fault_causes import Cause, instruction_fault
from accel.core.instruction_access import dram_rows
from accel.core.isa import Load, Memory, decode_uops, encode_uops, format_instruction
from accel.core.scratchpad_specs import SCRATCHPADS, UOP
from accel.core.token_rules import Counter
from accel.image.image import Image
from accel.image.test_scenario import NO_TOKENS, Expected, Start, Tokens

_COMMENT_COLUMN = 88
_ZEROS = 32
"""Longer runs of zero bytes become a ``.zero``."""
_PER_LINE = {"uop": 8, "int8": 32, "int16": 16, "int32": 16, "hex": 32}
_WIDTHS = {"uop": 4, "int8": 1, "int16": 2, "int32": 4, "hex": 1}


def disassemble(image: Image, *, micro_ops: int = 0) -> str:
    """Return a program as text for :func:`~accel.assembly.assemble`, without compilation time and provenance.

    Args:
        image: unused bits of instructions become zero.
        micro_ops: micro-ops of each GEMM and ALU to list in comments.
    """
    sections = [
        list(_head(image)),
        list(code_lines(image, micro_ops=micro_ops)),
        list(_data(image)),
        list(_scenario(image.start, image.expected, image.config)),
    ]
    if image.source is not None:
        sections.append([f".source {json.dumps(image.source.to_data())}"])
    return "\n".join("".join(line + "\n" for line in section) for section in sections if section)


def code_lines(image: Image, *, micro_ops: int = 0) -> Iterator[str]:
    names = PlaceNames(image)
    annotator = Annotator(image)
    width = len(str(max(0, len(image.instructions) - 1)))
    for index, instruction in enumerate(image.instructions):
        text = f"{index:>{width}}  {format_instruction(instruction, names)}"
        comment = annotator.comment(index, instruction)
        yield f"{text:<{_COMMENT_COLUMN}}  # {comment}" if comment else text
        for step in annotator.steps(index, instruction, micro_ops) if micro_ops else ():
            yield f"{'':>{width}}    # {step}"


def _head(image: Image) -> Iterator[str]:
    yield f".config {_config_text(image.config)}"
    yield f".code {image.code_offset:#x}"
    for tensor in image.tensors:
        data = tensor.to_dict()
        words = [str(data.pop(key)) for key in ("name", "role", "dtype")]
        rest = json.dumps({key: data[key] for key in data if key != "offset" and data[key] is not None})
        yield f".tensor {' '.join(words)} {tensor.offset:#x} {rest}"
    for region in image.regions:
        yield f".region {region.name} {region.offset:#x} {region.nbytes}"
    for part in () if image.references is None else image.references.parts:
        yield f".part {part.name} {part.offset:#x} {part.nbytes}"


def _config_text(config: Config) -> str:

    def changes(base: Config) -> list[str]:
        numbers = [f"{n}={getattr(config, n)}" for n in SPECS if getattr(config, n) != getattr(base, n)]
        if config.alu_ops == base.alu_ops:
            return numbers
        return [*numbers, f"{ALU_OPS}={','.join(with_digests(config.alu_ops))}"]

    same = [one for one in NAMED.values() if one.post == config.post]
    base = min(same, key=lambda one: (len(changes(one)), one.name != config.name))
    name = [] if config.name == base.name else ["as", json.dumps(config.name)]
    return " ".join([base.name, *name, *changes(base)])


def _data(image: Image) -> Iterator[str]:
    uops = _uop_spans(image)
    dtypes = {t.offset: t.dtype for t in image.tensors if t.role == "constant"}
    labels = {t.offset: t.name for t in image.tensors} | {r.offset: r.name for r in image.regions}
    for offset, content in image.segments:
        name = f"  # {labels[offset]}" if offset in labels else ""
        yield f".dram {offset:#x}{name}"
        if offset in dtypes:
            yield from _typed(dtypes[offset], content, image.config)
            continue
        end = offset + len(content)
        cuts = sorted({offset, end, *(cut for span in uops for cut in span if offset < cut < end)})
        for a, b in pairwise(cuts):
            kind = "uop" if any(start <= a and b <= stop for start, stop in uops) else "hex"
            yield from _typed(kind, content[a - offset : b - offset], image.config)


def _uop_spans(image: Image) -> list[tuple[int, int]]:
    """Return the byte ranges of micro-ops in the window, joined where they overlap."""
    found: list[tuple[int, int]] = []
    spans = set()
    for instruction in image.instructions:
        if not isinstance(instruction, Load) or instruction.memory != Memory.UOP:
            continue
        rows = None if instruction_fault(instruction, image.config) else dram_rows(instruction, image.config)
        if rows is None:
            continue
        for y in range(rows.rows):
            start = rows.start + y * rows.stride - image.config.mem_base
            spans.add((start, start + rows.row_bytes))
    for start, stop in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((start, stop))
    return found


def _typed(kind: str, content: bytes, config: Config) -> Iterator[str]:
    """Bytes that do not fit the type are hexadecimal."""
    if len(content) % _WIDTHS[kind]:
        kind = "hex"
    step = _PER_LINE[kind] * _WIDTHS[kind]
    lines = [content[begin : begin + step] for begin in range(0, len(content), step)]
    for blank, group in groupby(lines, key=lambda line: len(line) >= _ZEROS and not any(line)):
        if blank:
            yield from _zeros(sum(map(len, group)))
        else:
            yield from ("    " + _statement(kind, line, config) for line in group)


def _zeros(count: int) -> Iterator[str]:
    while count:
        yield f"    .zero {min(count, MOST_VALUES)}"
        count -= min(count, MOST_VALUES)


def _statement(kind: str, content: bytes, config: Config) -> str:
    if kind == "uop":
        words = np.frombuffer(content, dtype="<u4")
        rows = decode_uops(words, config)
        if np.array_equal(encode_uops(rows, config), words):
            return ".uop " + " ".join(",".join(map(str, row)) for row in rows.tolist())
    elif kind in ("int8", "int16", "int32"):
        dtype: Any = np.dtype(kind).newbyteorder("<")
        return f".{kind} {format_integers(np.frombuffer(content, dtype=dtype))}"
    return f".hex {content.hex()}"


def _scenario(start: Start, expected: Expected | None, config: Config) -> Iterator[str]:
    if start.tokens != NO_TOKENS:
        yield f".tokens {_token_text(start.tokens)}"
    limits = {"cycles": start.max_cycles, "uops": start.max_uops}
    if any(limits.values()):
        yield ".limit " + " ".join(f"{name}={value}" for name, value in limits.items() if value)
    for one in start.contents:
        yield f".preset {one.scratchpad}[{one.element}]"
        yield from _typed(_kind(one.scratchpad, config), one.data, config)
    if expected is None:
        return
    at = "" if expected.instruction is None else f" at {expected.instruction}"
    yield ".expect done" if expected.cause is Cause.NONE else f".expect fault {expected.cause.label}{at}"
    if expected.racy:
        yield ".expect race"
    if expected.tokens is not None:
        yield f".expect tokens {_token_text(expected.tokens)}".rstrip()
    for offset, content in expected.memory:
        yield f".expect dram[{offset:#x}]"
        yield from _typed("int8", content, config)
    for one in expected.contents:
        yield f".expect {one.scratchpad}[{one.element}]"
        yield from _typed(_kind(one.scratchpad, config), one.data, config)


def _kind(scratchpad: str, config: Config) -> str:
    """For example ``int8``, also for tables of uint8."""
    return "uop" if scratchpad == UOP.name else SCRATCHPADS[scratchpad].held_dtype(config).removeprefix("u")


def _token_text(tokens: Tokens) -> str:
    return " ".join(f"{token_label(counter)}={tokens[counter]}" for counter in Counter if tokens[counter])

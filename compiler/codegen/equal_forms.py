"""Programs of layers that differ in scales, zero points and bounds only.

Their instructions are equal except for SETs. For example, two layers that add residuals with different scales
differ in SET.SUM.
"""

from collections.abc import Iterator, Sequence

from accel.base.records import replace
from accel.compiler.codegen.copy_emission import operand_setting
from accel.compiler.codegen.statement_numbers import StatementNumbers
from accel.compiler.codegen.statement_origins import Origins
from accel.compiler.codegen.store_emission import store_settings
from accel.compiler.nest.nest import Copy, HostPack, Nest, StoreEpilogue, walk_nodes
from accel.compiler.nest.nest_text import without_settings
from accel.compiler.schedule.schedule import Step
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.isa import TOKEN_FLAGS, Set, SetInp, SetOut, SetSum, SetWgt, encode
from accel.image.image import Image
from accel.image.image_tensor import ImageTensor
from accel.image.provenance import Provenance, Statement

_EXCHANGED = (SetInp, SetWgt, SetOut, SetSum)


def image_like(image: Image, nest: Nest, steps: Sequence[Step]) -> Image | None:
    """Return the program of ``nest``, made from that of a nest with equal form, steps and buffer names.

    Return None if it has more SETs, or fewer.
    """
    code = _code(image, nest)
    if code is None or image.provenance is None:
        return None
    provenance = _provenance(image.provenance, nest, Origins(nest, steps))
    return replace(image, code=code, tensors=_tensors(image.tensors, nest), provenance=provenance)


def _code(image: Image, nest: Nest) -> bytes | None:
    wanted: dict[type[Set], set[Set]] = {kind: set() for kind in _EXCHANGED}
    for one in _settings(nest, image.config):
        wanted[type(one)].add(one)
    found: dict[type[Set], list[int]] = {kind: [] for kind in _EXCHANGED}
    for number, instruction in enumerate(image.instructions):
        if isinstance(instruction, _EXCHANGED):
            found[type(instruction)].append(number)
    code = bytearray(image.code)
    for kind, numbers in found.items():
        if not numbers and wanted[kind] <= {kind()}:  # all settings are zero at first
            continue
        if len(numbers) != 1 or len(wanted[kind]) != 1 or wanted[kind] == {kind()}:
            return None
        (number,), (setting,) = numbers, wanted[kind]
        tokens = {flag: getattr(image.instructions[number], flag) for flag in TOKEN_FLAGS}
        begin = number * INSTRUCTION_BYTES
        code[begin : begin + INSTRUCTION_BYTES] = encode([replace(setting, **tokens)], image.config)
    return bytes(code)


def _settings(nest: Nest, config: Config) -> Iterator[Set]:
    for node in walk_nodes(nest.body):
        if isinstance(node, StoreEpilogue):
            yield from store_settings(node)
        elif isinstance(node, Copy):
            setting = operand_setting(node, config)
            if setting is not None:
                yield setting


def _tensors(tensors: Sequence[ImageTensor], nest: Nest) -> tuple[ImageTensor, ...]:
    widening = {node.source.name: node.packing for node in nest.body if isinstance(node, HostPack)}
    prepared = {buffer.name: one for buffer, one in nest.preparations.items()}
    return tuple(
        replace(one, preparation=prepared.get(one.name), widening=widening.get(one.name)) for one in tensors
    )


def _provenance(provenance: Provenance, nest: Nest, origins: Origins) -> Provenance:
    """Replace zero points and bounds in the texts."""
    texts: dict[Statement, str] = {}
    for node, loops in StatementNumbers(nest.body).statements:
        if isinstance(node, Copy | StoreEpilogue):
            statement = origins.statement(node, loops)
            texts[_without_settings(statement)] = statement.text
    statements = tuple(
        replace(one, text=texts.get(_without_settings(one), one.text)) for one in provenance.statements
    )
    return replace(provenance, statements=statements)


def _without_settings(statement: Statement) -> Statement:
    return replace(statement, text=without_settings(statement.text))

"""The assembler."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from accel.assembly.integer_lists import DATA, parse_data, parse_integer
from accel.assembly.symbolic_names import tensor_label, token_label
from accel.base.errors import AccelError, ProgramError, nearest
from accel.base.records import replace
from accel.core.config import NAMED, PAGE_BYTES, Config
from accel.core.fault_causes import Cause, dram_element_bytes
from accel.core.isa import Instruction, Transfer, check_encodable, encode, parse_instruction
from accel.core.scratchpad_specs import SCRATCHPADS, scratchpads_of
from accel.core.token_rules import Counter
from accel.image.address_allocation import free_address
from accel.image.dram_references import Part
from accel.image.image import Image, ImageTensor, Region, check_image
from accel.image.image_tensor import read_tensor
from accel.image.linker import by_address
from accel.image.program_source import Source
from accel.image.test_scenario import Contents, Expected, Start, Tokens, cause_by_label

_NUMBERED = re.compile(r"\s*\d+\s+(?=[A-Za-z_.])")
_LABEL = re.compile(r"\s*([A-Za-z_]\w*)\s*:(?=\s|$)")
_PLACE = re.compile(r"(\w+)\[([^\]]*)\]")
_NAME_AND_OFFSET = re.compile(r"([A-Za-z_][\w.]*)([+-].+)?")
_LONGEST = 64 << 20
"""Bytes of text."""


def load_assembly(path: str | Path) -> Image:
    """Read and assemble a file.

    Raises:
        ProgramError: it cannot be read, or is malformed, with the line.
    """
    name = f"{str(path)!r}"
    try:
        with open(path, "rb") as file:
            raw = file.read(_LONGEST + 1)
    except OSError as error:
        raise ProgramError(f"program {name} cannot be read: {error.strerror}") from None
    if len(raw) > _LONGEST:
        raise ProgramError(f"program {name} has more than {_LONGEST} bytes; that is too long for a text")
    try:
        return assemble(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise ProgramError(f"program {name} is not text: it is not UTF-8") from None


def assemble(text: str, name: str = "program") -> Image:
    """Assemble a text.

    Args:
        text: in the language of ``docs/reference/assembly.md``.
        name: of the text in errors.

    Raises:
        ProgramError: the text is malformed, with the line and the expected form.
    """
    assembler = _Assembler(name)
    for number, line in enumerate(text.splitlines(), start=1):
        with assembler.at(number):
            assembler.read(line)
    return assembler.image()


class _Block(Struct, kw_only=True):
    line: int
    memory: str
    base: str
    data: bytearray = field(default_factory=bytearray)
    labels: dict[str, int] = field(default_factory=dict)


class _Assembler:
    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 1
        self._config: Config | None = None
        self._code: list[tuple[int, str]] = []
        self._code_offset: int | None = None
        self._tensors: list[ImageTensor] = []
        self._regions: list[Region] = []
        self._parts: list[Part] = []
        self._dram: list[_Block] = []
        self._presets: list[_Block] = []
        self._expected: list[_Block] = []
        self._block: _Block | None = None
        self._pending: list[str] = []
        self._places: dict[str, int] = {}
        """Offsets in DRAM."""
        self._indices: dict[str, int] = {}
        """Instructions of labels."""
        self._start: dict[str, Any] = {}
        self._outcome: tuple[int, Cause, str | None] | None = None
        self._left: Tokens | None = None
        self._racy = False
        self._is_test = False
        self._source: Source | None = None
        self._directives: dict[str, Callable[[str], None]] = {
            "config": self._config_line,
            "code": self._code_line,
            "dram": self._dram_line,
            "align": self._align_line,
            "tensor": self._tensor_line,
            "region": self._region_line,
            "part": self._part_line,
            "preset": self._preset_line,
            "tokens": self._tokens_line,
            "limit": self._limit_line,
            "expect": self._expect_line,
            "source": self._source_line,
        }

    @contextmanager
    def at(self, line: int) -> Iterator[None]:
        self._line = line
        try:
            yield
        except AccelError as error:
            raise ProgramError(f"{self._name}, line {line}: {error}") from None

    # --- one line --------------------------------------------------------------------------------

    def read(self, line: str) -> None:
        rest = _without_comment(line)
        if match := _NUMBERED.match(rest):
            rest = rest[match.end() :]
        while match := _LABEL.match(rest):
            self._define(match[1])
            rest = rest[match.end() :]
        rest = rest.strip()
        if not rest:
            return
        if rest.startswith("."):
            self._directive(rest)
        else:
            self._machine()
            self._bind(self._indices, len(self._code))
            self._code.append((self._line, rest))

    def _directive(self, text: str) -> None:
        word, _, rest = text[1:].partition(" ")
        kind, rest = word.lower(), rest.strip()
        if kind in DATA:
            self._data(kind, rest)
            return
        if kind not in self._directives:
            hint = nearest("." + kind, ("." + one for one in (*self._directives, *DATA)))
            raise ProgramError(f"'.{kind}' is not a directive; {hint}")
        if kind != "config":
            self._machine()
        self._directives[kind](rest)

    def _data(self, kind: str, rest: str) -> None:
        config = self._machine()
        block = self._block
        if block is None:
            raise ProgramError(f".{kind} stands nowhere; .dram, .preset or .expect says where data goes")
        if self._pending and block not in self._dram:
            raise ProgramError(
                f"label {self._pending[0]!r} stands at data that is not in DRAM before the run"
            )
        labels: dict[str, int] = {}
        self._bind(labels, len(block.data))
        block.labels |= labels
        self._places |= {name: parse_integer(block.base) + at for name, at in labels.items()}
        block.data += parse_data(kind, rest.split(), config)

    def _machine(self) -> Config:
        if self._config is None:
            raise ProgramError(".config must come first: the machine decides how everything is encoded")
        return self._config

    def _define(self, name: str) -> None:
        if name in self._places or name in self._indices or name in self._pending:
            raise ProgramError(f"{name!r} is defined twice")
        self._pending.append(name)

    def _bind(self, table: dict[str, int], value: int) -> None:
        for name in self._pending:
            table[name] = value
        self._pending.clear()

    def _name_place(self, name: str, offset: int) -> None:
        if name in self._places or name in self._indices:
            raise ProgramError(f"{name!r} is defined twice")
        self._places[name] = offset

    def _offset(self, expression: str) -> int:
        match = _NAME_AND_OFFSET.fullmatch(expression.strip())
        if match is None:
            return parse_integer(expression.strip(), "a place in DRAM")
        return self._place(match[1]) + (parse_integer(match[2]) if match[2] else 0)

    def _place(self, name: str) -> int:
        if name not in self._places:
            hint = nearest(name, self._places) if self._places else "nothing in DRAM has a name"
            raise ProgramError(f"{name!r} is not a place in DRAM; {hint}")
        return self._places[name]

    def _element(self, name: str, transfer: Transfer) -> int:
        offset, size = self._place(name), dram_element_bytes(transfer, self._machine())
        if offset % size:
            raise ProgramError(f"{name!r} is at byte {offset:#x}; elements have {size} bytes here")
        return offset // size

    def _config_line(self, text: str) -> None:
        if self._config is not None:
            raise ProgramError(".config stands twice")
        match = re.fullmatch(r"(\S+)(?:\s+as\s+(\"(?:[^\"\\]|\\.)*\"))?((?:\s+\w+=\S+)*)", text)
        if match is None or match[1] not in NAMED:
            raise ProgramError(
                f".config has {text!r}; it takes one of {', '.join(NAMED)}, then any number of FIELD=VALUE"
            )
        settings = dict(word.split("=", 1) for word in match[3].split())
        config = NAMED[match[1]].override(settings)
        if match[2]:
            config = Config(**(config.to_dict() | {"name": str(json.loads(match[2]))}))
        check_encodable(config)
        self._config = config

    def _code_line(self, text: str) -> None:
        if self._code_offset is not None:
            raise ProgramError(".code stands twice")
        self._code_offset = parse_integer(text, "the offset of the first instruction")

    def _open(self, blocks: list[_Block], memory: str, base: str, rest: str) -> None:
        self._block = _Block(line=self._line, memory=memory, base=base)
        blocks.append(self._block)
        if rest:
            if not rest.startswith("."):
                raise ProgramError(f"{rest!r} stands where a data statement could, as .int8 1 2 3")
            self._directive(rest)

    def _dram_line(self, text: str) -> None:
        base, _, rest = text.partition(" ")
        if not base or base.startswith("."):
            base, rest = "", text
        if base:
            self._open(self._dram, "dram", str(parse_integer(base, "an offset in DRAM")), rest.strip())
            return
        ends = [int(block.base) + len(block.data) for block in self._dram]
        free = -(-max(ends, default=1) // PAGE_BYTES) * PAGE_BYTES
        self._open(self._dram, "dram", str(free), rest.strip())

    def _align_line(self, text: str) -> None:
        step = parse_integer(text, "a number of bytes")
        if self._block is None or not 1 <= step <= PAGE_BYTES:
            raise ProgramError(f".align has {text!r}; it takes 1..{PAGE_BYTES} bytes, within data")
        self._block.data += bytes(-len(self._block.data) % step)

    def _tensor_line(self, text: str) -> None:
        words = text.split(maxsplit=4)
        if len(words) != 5:
            raise ProgramError(".tensor takes a name, a role, a dtype, an offset, and a layout as JSON")
        name, role, dtype, offset, rest = words
        data = _json(rest)
        if not isinstance(data, dict):
            raise ProgramError("the layout of a tensor must be a JSON object")
        known = {"name": name, "role": role, "dtype": dtype, "offset": parse_integer(offset, "an offset")}
        tensor = read_tensor(data | known)
        self._name_place(tensor_label(tensor, self._tensors), tensor.offset)
        self._tensors.append(tensor)

    def _region_line(self, text: str) -> None:
        words = text.split()
        if len(words) != 3 or not words[0].isidentifier():
            raise ProgramError(".region takes a name, an offset, and a number of bytes")
        offset, nbytes = (parse_integer(word) for word in words[1:])
        if offset < 0 or nbytes < 0:
            raise ProgramError(f"region {words[0]!r} is {nbytes} bytes at {offset}; neither may be negative")
        self._name_place(words[0], offset)
        self._regions.append(Region(name=words[0], offset=offset, nbytes=nbytes))

    def _part_line(self, text: str) -> None:
        words = text.split()
        if len(words) != 3:
            raise ProgramError(".part takes a name, an offset, and a number of bytes")
        offset, nbytes = (parse_integer(word) for word in words[1:])
        if offset < 0 or nbytes < 0:
            raise ProgramError(f"part {words[0]!r} is {nbytes} bytes at {offset}; neither may be negative")
        self._parts.append(Part(offset=offset, nbytes=nbytes, name=words[0]))
        if words[0].isidentifier() and words[0] not in {*self._places, *self._indices}:
            self._places[words[0]] = offset

    def _preset_line(self, text: str) -> None:
        memory, base, rest = self._memory_place(text, self._scratchpads())
        self._open(self._presets, memory, base, rest)

    def _scratchpads(self) -> tuple[str, ...]:
        return tuple(SCRATCHPADS if self._config is None else scratchpads_of(self._config))

    def _memory_place(self, text: str, valid: tuple[str, ...]) -> tuple[str, str, str]:
        match = _PLACE.match(text)
        if match is None:
            raise ProgramError(f"{text!r} stands where a place is needed, as {valid[-1]}[0]")
        if match[1] not in valid:
            raise ProgramError(f"{match[1]!r} is not a memory; {nearest(match[1], valid)}")
        return match[1], match[2], text[match.end() :].strip()

    def _tokens_line(self, text: str) -> None:
        self._start["tokens"] = _parse_tokens(text)

    def _limit_line(self, text: str) -> None:
        for word in text.split():
            match = re.fullmatch(r"(cycles|uops)=(\w+)", word)
            if match is None:
                raise ProgramError(f"{word!r} is not a limit; it takes cycles=N or uops=N")
            value = parse_integer(match[2])
            if value < 1:
                raise ProgramError(f"{match[1]} is {value}; it must be positive")
            self._start[f"max_{match[1]}"] = value

    def _expect_line(self, text: str) -> None:
        self._is_test = True
        word, _, rest = text.partition(" ")
        if word == "tokens":
            self._left = _parse_tokens(rest)
        elif text == "race":
            self._racy = True
        elif word in ("done", "fault"):
            self._outcome_line(text)
        else:
            memory, base, after = self._memory_place(text, (*self._scratchpads(), "dram"))
            self._open(self._expected, memory, base, after)

    def _outcome_line(self, text: str) -> None:
        if self._outcome is not None:
            raise ProgramError("what a run ends with is expected twice")
        match = re.fullmatch(r"fault\s+(\S+)(?:\s+at\s+(\w+))?", text)
        if text == "done":
            self._outcome = (self._line, Cause.NONE, None)
        elif match is not None:
            self._outcome = (self._line, cause_by_label(match[1], of_error=True), match[2])
        else:
            raise ProgramError(f"{text!r} is not an end of a run; done, and fault CAUSE at INSTRUCTION are")

    def _source_line(self, text: str) -> None:
        data = _json(text)
        if not isinstance(data, dict):
            raise ProgramError(".source takes a JSON object")
        self._source = Source.from_data(data)

    # --- the whole -------------------------------------------------------------------------------

    def image(self) -> Image:
        with self.at(self._line):
            config = self._machine()
            if self._pending:
                raise ProgramError(f"label {self._pending[0]!r} stands at nothing")
        instructions: list[Instruction] = []
        for line, text in self._code:
            with self.at(line):
                instructions.append(parse_instruction(text, config, self._element))
        segments = self._segments()
        regions = (*self._regions, *self._labelled())
        start = Start(contents=tuple(self._contents(self._presets, config)), **self._start)
        expected = self._expectation(config) if self._is_test else None
        code = encode(instructions, config)
        offset = self._code_offset
        if offset is None:
            used = [(at, at + len(content)) for at, content in segments]
            used += [(tensor.offset, tensor.offset + tensor.nbytes) for tensor in self._tensors]
            used += [(region.offset, region.offset + region.nbytes) for region in regions]
            used += [(at, at + len(content)) for at, content in (expected.memory if expected else ())]
            offset = free_address(config, instructions, used, len(code), self._name) - config.mem_base
        image = Image(
            config=config,
            code=code,
            code_offset=offset,
            segments=segments,
            tensors=tuple(self._tensors),
            regions=regions,
            start=start,
            expected=expected,
            source=self._source,
        )
        if self._parts:
            image = replace(image, references=by_address(image, self._parts))
        try:
            check_image(image)
        except AccelError as error:
            raise ProgramError(f"{self._name}: {error}") from None
        return image

    def _segments(self) -> tuple[tuple[int, bytes], ...]:
        last: _Block | None = None
        for block in sorted(self._dram, key=lambda one: int(one.base)):
            with self.at(block.line):
                if int(block.base) < 0:
                    raise ProgramError(f"data is at {int(block.base)}; offsets are not negative")
                if last is not None and int(last.base) + len(last.data) > int(block.base):
                    raise ProgramError(
                        f"data at {int(block.base):#x} overlaps that of line {last.line}, "
                        f"which ends at {int(last.base) + len(last.data):#x}"
                    )
            if block.data:
                last = block
        return tuple((int(block.base), bytes(block.data)) for block in self._dram if block.data)

    def _labelled(self) -> Iterator[Region]:
        for block in self._dram:
            stops = sorted({*block.labels.values(), len(block.data)})
            for name, at in block.labels.items():
                stop = next((one for one in stops if one > at), at)
                yield Region(name=name, offset=int(block.base) + at, nbytes=stop - at)

    def _contents(self, blocks: list[_Block], config: Config) -> Iterator[Contents]:
        for block in blocks:
            with self.at(block.line):
                element = parse_integer(block.base, "an element's index")
                one = Contents(scratchpad=block.memory, element=element, data=bytes(block.data))
                if not block.data:
                    size = SCRATCHPADS[block.memory].held_bytes(config)
                    raise ProgramError(f"no data follows; an element of {block.memory} has {size} bytes")
                one.check(config)
                yield one

    def _expectation(self, config: Config) -> Expected:
        memory = []
        for block in self._expected:
            with self.at(block.line):
                if block.memory == "dram":
                    memory.append((self._offset(block.base), bytes(block.data)))
        pads = [block for block in self._expected if block.memory != "dram"]
        line, cause, at = self._outcome or (0, Cause.NONE, None)
        index = None
        if at is not None:
            with self.at(line):
                index = self._indices[at] if at in self._indices else parse_integer(at, "an instruction")
        return Expected(
            cause=cause,
            instruction=index,
            memory=tuple(memory),
            contents=tuple(self._contents(pads, config)),
            tokens=self._left,
            racy=self._racy,
        )


def _parse_tokens(text: str) -> Tokens:
    counts = dict.fromkeys(Counter, 0)
    named = {token_label(counter): counter for counter in Counter}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or name not in named:
            raise ProgramError(f"{word!r} is not a number of tokens; {nearest(name, named)}")
        counts[named[name]] = parse_integer(value)
    return counts[Counter(0)], counts[Counter(1)], counts[Counter(2)], counts[Counter(3)]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ProgramError(f"this is not JSON: {error}") from None


def _without_comment(line: str) -> str:
    if "#" not in line:
        return line
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|#', line):
        if match[0] == "#":
            return line[: match.start()]
    return line

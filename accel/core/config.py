"""The configuration of a machine: its geometry, its timing, and everything that follows from them.

*Geometry* is bound when a program is compiled and stored in it; *timing* may differ from run to run.
Each field is declared once, with its unit and the values it may take; the command line, the
documentation and the file readers are driven by these declarations.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, SupportsIndex

from accel.base.arguments import plain_integer
from accel.base.errors import ConfigError, nearest
from accel.base.plain import kind_of, shown
from accel.core.memories import ACC, INP, PAR, PAR_INDEX_BITS, RES, UOP, WGT, bits_of, scratchpads_of

Kind = Literal["geometry", "timing"]

DRAM_ADDRESS_BITS = 40
PAGE_BYTES = 4096
"""No burst crosses a boundary of this many bytes (AXI4)."""
INSTRUCTION_BYTES = 16
UOP_BYTES = bits_of(UOP.dtype) // 8


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What one configuration field means and which values it takes; ``post`` fields belong to the second
    generation, and machines of the first do not have them."""

    kind: Kind
    unit: str
    doc: str
    low: int
    high: int
    power_of_two: bool = False
    post: bool = False
    optional: bool = False
    """Of geometry, whether programs of older releases do not have it."""


def _field(
    default: int,
    kind: Kind,
    unit: str,
    doc: str,
    low: int,
    high: int,
    *,
    power_of_two: bool = False,
    post: bool = False,
    optional: bool = False,
) -> Any:
    spec = Spec(
        kind=kind,
        unit=unit,
        doc=doc,
        low=low,
        high=high,
        power_of_two=power_of_two,
        post=post,
        optional=optional,
    )
    return field(default=default, metadata={"spec": spec})


def _size(default: int, doc: str) -> Any:
    return _field(default, "geometry", "elements", doc, 1, 256, power_of_two=True)


def _memory(default: int, doc: str, *, post: bool = False) -> Any:
    return _field(default, "geometry", "bytes", doc, 1, 1 << 26, power_of_two=True, post=post)


def _timing(
    default: int, unit: str, doc: str, low: int, high: int, *, power_of_two: bool = False, post: bool = False
) -> Any:
    return _field(default, "timing", unit, doc, low, high, power_of_two=power_of_two, post=post)


_TAP_BANKS = 4
"""Enough for three columns of a kernel, side by side."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """One machine. The defaults are the stock VTA's geometry; see :data:`NAMED` for the others."""

    name: str = "custom"

    batch: int = _size(1, "rows of an inp, acc and out element")
    block_in: int = _size(16, "columns of an inp and of a wgt element: the GEMM core's reduce axis")
    block_out: int = _size(16, "rows of a wgt element, columns of an acc and out element")
    uop_bytes: int = _memory(32 << 10, "capacity of the micro-op memory")
    inp_bytes: int = _memory(32 << 10, "capacity of the inp scratchpad")
    wgt_bytes: int = _memory(256 << 10, "capacity of the wgt scratchpad")
    acc_bytes: int = _memory(128 << 10, "capacity of the acc scratchpad; out holds as many elements")

    bus_bits: int = _timing(64, "bits", "width of the AXI4 data bus", 64, 512, power_of_two=True)
    read_latency: int = _timing(64, "cycles", "from the grant of a read burst to its first beat", 2, 65535)
    write_latency: int = _timing(
        16, "cycles", "from the last beat of a write burst to its response", 1, 65535
    )
    outstanding: int = _timing(32, "bursts", "bursts in flight at most, reads and writes each", 1, 256)
    max_burst_beats: int = _timing(
        256, "beats", "longest burst; a row is split at it and at 4 KiB boundaries", 2, 256, power_of_two=True
    )
    fetch_buffer: int = _timing(
        64, "instructions", "fetched but not yet handed out", 1, 4096, power_of_two=True
    )
    fetch_chunk: int = _timing(16, "instructions", "asked for at once by fetch", 1, 256, power_of_two=True)
    load_queue: int = _timing(32, "instructions", "depth of the load unit's queue", 1, 4096)
    compute_queue: int = _timing(32, "instructions", "depth of the compute unit's queue", 1, 4096)
    store_queue: int = _timing(32, "instructions", "depth of the store unit's queue", 1, 4096)
    loads_in_flight: int = _timing(8, "instructions", "loads started and not yet retired, at most", 1, 64)
    stores_in_flight: int = _timing(8, "instructions", "stores started and not yet retired, at most", 1, 64)
    tree_stages: int = _timing(2, "cycles", "pipeline stages of the MAC array's adder tree", 0, 8)
    token_bits: int = _timing(8, "bits", "width of a token counter", 1, 16)
    mem_base: int = _timing(0, "bytes", "first byte of the DRAM window", 0, (1 << DRAM_ADDRESS_BITS) - 1)
    mem_size: int = _timing(256 << 20, "bytes", "size of the DRAM window", 1, 1 << DRAM_ADDRESS_BITS)
    serial: int = _timing(
        0, "flag", "monolithic pipeline: an instruction is handed out when the one before has retired", 0, 1
    )
    mul_slots: int = _timing(
        1,
        "cycles",
        "slots of a micro-op of the ALU's MUL; with 4, one multiplier a lane makes its product part by part, "
        "with 5 from registers",
        1,
        5,
    )
    dispatch_stages: int = _timing(
        0,
        "cycles",
        "pipeline stages between fetch and the queues, in which instructions are checked",
        0,
        3,
    )

    post: int = _field(
        0,
        "geometry",
        "flag",
        "second generation: products that overwrite, zero points, outputs finished in the store path",
        0,
        1,
        post=True,
    )
    post_stages: int = _timing(
        10, "cycles", "pipeline stages of the store path, which every STORE goes through", 0, 16, post=True
    )
    par_bytes: int = _memory(
        16 << 10, "capacity of the par scratchpad: bias and scale of each channel", post=True
    )
    res_bytes: int = _memory(
        16 << 10, "capacity of the res scratchpad: residuals, first in, first out", post=True
    )
    post_lanes: int = _timing(
        0,
        "values",
        "finished in a cycle by STORE.REQ and STORE.ADD; 0: as many as a beat and an out element have",
        0,
        64,
        power_of_two=True,
        post=True,
    )
    inp_banks: int = _field(
        0,
        "geometry",
        "banks",
        "of the inp scratchpad, by element index, across which the taps of a depthwise MAC lie; "
        "0: 4 (or block_in if that is less) where block_in and block_out are equal, otherwise 1",
        0,
        64,
        power_of_two=True,
        post=True,
        optional=True,
    )

    def __post_init__(self) -> None:
        for name, spec in SPECS.items():
            object.__setattr__(self, name, _checked_value(self, name, spec))
        for name in SPECS.keys() - self.fields:
            if getattr(self, name) != getattr(Config, name):
                raise ConfigError(
                    f"{name} is {getattr(self, name)} in configuration {self.name!r}; "
                    "only machines with post=1 have it"
                )
        for memory, scratchpad in scratchpads_of(self).items():
            capacity, element = getattr(self, f"{memory}_bytes"), scratchpad.element_bytes(self)
            if capacity < 2 * element:
                raise ConfigError(
                    f"{memory}_bytes is {capacity} in configuration {self.name!r}; "
                    f"two elements of {element} bytes are the least"
                )
        if self.post:
            self._check_post()
        if self.mem_base % PAGE_BYTES:
            raise ConfigError(f"mem_base is {self.mem_base}; it must be a multiple of {PAGE_BYTES}")
        if self.mem_base + self.mem_size > 1 << DRAM_ADDRESS_BITS:
            raise ConfigError(
                f"mem_base + mem_size is {self.mem_base + self.mem_size}; "
                f"DRAM addresses have {DRAM_ADDRESS_BITS} bits"
            )
        if self.fetch_chunk > self.fetch_buffer:
            raise ConfigError(
                f"fetch_chunk is {self.fetch_chunk}; fetch_buffer holds only {self.fetch_buffer} instructions"
            )

    def _check_post(self) -> None:
        most = self.par_element_bytes << PAR_INDEX_BITS
        if self.par_bytes > most:
            raise ConfigError(
                f"par_bytes is {self.par_bytes} in configuration {self.name!r}; an index into par has "
                f"{PAR_INDEX_BITS} bits, so {most} are the most"
            )
        if self.inp_banks > 1 and self.block_in != self.block_out:
            raise ConfigError(
                f"inp_banks is {self.inp_banks} in configuration {self.name!r}; only machines with equal "
                f"block_in and block_out have depthwise MACs, and more banks than 1"
            )
        if self.inp_banks > self.inp_depth:
            raise ConfigError(
                f"inp_banks is {self.inp_banks} in configuration {self.name!r}; "
                f"inp has {self.inp_depth} elements"
            )
        for bytes_, what in ((self.bus_bytes, "a beat"), (self.out_element_bytes, "an out element")):
            if self.post_lanes > bytes_:
                raise ConfigError(
                    f"post_lanes is {self.post_lanes} in configuration {self.name!r}; "
                    f"{what} has {bytes_} values"
                )

    # --- elements and depths -------------------------------------------------------------------

    @cached_property
    def inp_element_bytes(self) -> int:
        return INP.element_bytes(self)

    @cached_property
    def wgt_element_bytes(self) -> int:
        return WGT.element_bytes(self)

    @cached_property
    def acc_element_bytes(self) -> int:
        return ACC.element_bytes(self)

    @cached_property
    def out_element_bytes(self) -> int:
        return ACC.values(self)

    @cached_property
    def par_element_bytes(self) -> int:
        return PAR.element_bytes(self)

    @cached_property
    def res_element_bytes(self) -> int:
        return RES.element_bytes(self)

    @cached_property
    def uop_depth(self) -> int:
        return UOP.depth(self)

    @cached_property
    def inp_depth(self) -> int:
        return INP.depth(self)

    @cached_property
    def wgt_depth(self) -> int:
        return WGT.depth(self)

    @cached_property
    def acc_depth(self) -> int:
        return ACC.depth(self)

    @cached_property
    def par_depth(self) -> int:
        return PAR.depth(self)

    @cached_property
    def res_depth(self) -> int:
        return RES.depth(self)

    @cached_property
    def uop_address_bits(self) -> int:
        return UOP.address_bits(self)

    @cached_property
    def inp_address_bits(self) -> int:
        return INP.address_bits(self)

    @cached_property
    def wgt_address_bits(self) -> int:
        return WGT.address_bits(self)

    @cached_property
    def acc_address_bits(self) -> int:
        return ACC.address_bits(self)

    @cached_property
    def par_address_bits(self) -> int:
        return PAR.address_bits(self)

    @cached_property
    def res_address_bits(self) -> int:
        return RES.address_bits(self)

    # --- rates ---------------------------------------------------------------------------------

    @cached_property
    def bus_bytes(self) -> int:
        return self.bus_bits // 8

    @cached_property
    def macs_per_cycle(self) -> int:
        return self.batch * self.block_in * self.block_out

    @cached_property
    def lanes(self) -> int:
        """Values that STORE.REQ and STORE.ADD finish in a cycle: ``post_lanes``, or the most there can be."""
        return self.post_lanes or min(self.bus_bytes, self.out_element_bytes)

    @cached_property
    def depthwise(self) -> bool:
        """Whether there are depthwise MACs: each column of an inp element has a row of a wgt element."""
        return bool(self.post) and self.block_in == self.block_out

    @cached_property
    def tap_banks(self) -> int:
        """Banks of inp across which the taps of a depthwise MAC lie: ``inp_banks``, or what its zero stands
        for."""
        if self.inp_banks or not self.depthwise:
            return self.inp_banks or 1
        return min(_TAP_BANKS, self.block_in, self.inp_depth)

    @cached_property
    def token_limit(self) -> int:
        """Largest value of a token counter."""
        return (1 << self.token_bits) - 1

    @cached_property
    def block_name(self) -> str:
        """The geometry as intrinsic names carry it: ``8x8``, or ``1x16x16`` where the sizes differ."""
        if self.batch == self.block_in == self.block_out:
            return f"{self.batch}x{self.batch}"
        return f"{self.batch}x{self.block_in}x{self.block_out}"

    # --- variants and data ---------------------------------------------------------------------

    def override(
        self, values: Mapping[str, int | str], *, kinds: tuple[Kind, ...] = ("geometry", "timing")
    ) -> "Config":
        """This configuration with some fields replaced; sizes may be written ``64KiB``.

        Raises:
            ConfigError: for an unknown field, one of a kind not in ``kinds``, or a bad value.
        """
        parsed: dict[str, int] = {}
        for name, value in values.items():
            spec = SPECS.get(name)
            if spec is None:
                raise ConfigError(f"{name!r} is no configuration field; {nearest(name, SPECS)}")
            if spec.kind not in kinds:
                raise ConfigError(
                    f"{name!r} is a {spec.kind} field, bound when the program was compiled; "
                    f"only {' and '.join(kinds)} fields can be set here"
                )
            parsed[name] = parse_quantity(name, value)
        return replace(self, **parsed)  # type: ignore[arg-type]

    def variant(
        self, values: Mapping[str, int | str], *, kinds: tuple[Kind, ...] = ("geometry", "timing")
    ) -> "Config":
        """As :meth:`override`, for users who name a machine and change it.

        A machine of their own is then called by what they changed, since nothing else tells it from the one
        in its file; for those of :data:`NAMED` :attr:`label` does.

        Raises:
            ConfigError: as :meth:`override`.
        """
        found = self.override(values, kinds=kinds)
        changes = _changes(self, found)
        return found if self.name in NAMED or not changes else replace(found, name=f"{self.name} {changes}")

    def with_geometry_of(self, other: "Config") -> "Config":
        """This timing on ``other``'s geometry; what only machines of the second generation have is forgotten
        where that is of the first."""
        values = {name: getattr(other, name) for name, spec in SPECS.items() if spec.kind == "geometry"}
        lost = {name: getattr(Config, name) for name in SPECS.keys() - other.fields}
        return replace(self, **(values | lost))

    @cached_property
    def hardware(self) -> "Config":
        """What the hardware is built from: :data:`RUN_FIELDS` at their defaults, ``post_lanes`` and
        ``inp_banks`` as they are, no name."""
        values = {name: getattr(self, name) for name in SPECS if name not in RUN_FIELDS}
        counts = {"post_lanes": self.lanes, "inp_banks": self.tap_banks} if self.post else {}
        return Config(**values | counts)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data, as :func:`from_dict` reads them."""
        return {"name": self.name} | {name: getattr(self, name) for name in self.fields}

    @property
    def fields(self) -> list[str]:
        """The fields that this machine has, in order; those of the second generation only if it is of it."""
        return [name for name, spec in SPECS.items() if self.post or not spec.post]

    @cached_property
    def label(self) -> str:
        """The name, and of one of :data:`NAMED` that is not as it was what differs: ``vta with batch=2``."""
        stock = NAMED.get(self.name)
        changes = "" if stock is None else _changes(stock, self)
        return f"{self.name} {changes}".rstrip()

    def __str__(self) -> str:
        return f"{self.label} ({self.batch}x{self.block_in}x{self.block_out}, {self.bus_bits}-bit bus)"


SPECS: dict[str, Spec] = {f.name: f.metadata["spec"] for f in fields(Config) if "spec" in f.metadata}
"""Declaration of every field but the name, in order."""

RUN_FIELDS = frozenset({"read_latency", "write_latency", "mem_base", "mem_size", "serial"})
"""Timing fields that make no other hardware: the memory's, and those written to registers before a run."""


def _checked_value(config: Config, name: str, spec: Spec) -> int:
    """A field's value, as Python's own integer."""
    given = getattr(config, name)
    value = plain_integer(given)
    if value is None:
        raise ConfigError(f"{name} is {given!r} in configuration {config.name!r}; it must be an integer")
    if not spec.low <= value <= spec.high:
        raise ConfigError(
            f"{name} is {value} in configuration {config.name!r}; "
            f"it must be in {spec.low}..{spec.high} {spec.unit}"
        )
    if spec.power_of_two and value & (value - 1):
        raise ConfigError(f"{name} is {value} in configuration {config.name!r}; it must be a power of two")
    return value


_CHANGES_SHOWN = 3


def _changes(one: Config, other: Config) -> str:
    """The fields that differ, with their values in the second; nothing if none does."""
    fields = [
        f"{name}={getattr(other, name)}" for name in SPECS if getattr(one, name) != getattr(other, name)
    ]
    more = len(fields) - _CHANGES_SHOWN
    shown = ", ".join(fields[:_CHANGES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"with {shown}" if fields else ""


_UNITS = {"": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}


def parse_quantity(name: str, value: SupportsIndex | str | bool) -> int:
    """An integer, written as one, in hexadecimal, with ``KiB``, ``MiB`` or ``GiB``; as true or false where it
    is a flag, or no field."""
    text = str(value).strip().lower()
    if text in ("true", "false") and (name not in SPECS or SPECS[name].unit == "flag"):
        return int(text == "true")
    number = plain_integer(value)
    if number is not None:
        return number
    if re.fullmatch(r"0x[0-9a-f]+", text):
        return int(text, 16)
    match = re.fullmatch(r"(-?\d{1,40})\s*([a-z]*)", text)
    if match is None or match[2] not in _UNITS:
        raise ConfigError(f"{name} is {shown(value)}; it must be an integer, as 64, 0x40 or 64KiB")
    return int(match[1]) * _UNITS[match[2]]


_SECOND: dict[str, dict[str, int]] = {
    "tiny": {
        "block_out": 4,
        "wgt_bytes": 2 << 10,
        "acc_bytes": 2 << 10,
        "post_stages": 2,
        "par_bytes": 512,
        "res_bytes": 64,
    },
    "ecp5": {"post_lanes": 2},
}
"""What else is special about a machine of the second generation: the one for fuzzing has square blocks and
16 elements each in par and res; that for an ECP5 has multipliers for two lanes."""

_FIRST = (
    Config(name="vta"),
    Config(
        name="gemm8x8",
        batch=8,
        block_in=8,
        block_out=8,
        uop_bytes=16 << 10,
        inp_bytes=64 << 10,
        wgt_bytes=64 << 10,
        acc_bytes=128 << 10,
        bus_bits=128,
    ),
    Config(
        name="tiny",
        batch=1,
        block_in=4,
        block_out=8,
        uop_bytes=1 << 10,
        inp_bytes=512,
        wgt_bytes=4 << 10,
        acc_bytes=4 << 10,
        tree_stages=1,
    ),
    Config(
        name="ecp5",
        batch=1,
        block_in=8,
        block_out=8,
        uop_bytes=8 << 10,
        inp_bytes=8 << 10,
        wgt_bytes=32 << 10,
        acc_bytes=32 << 10,
        outstanding=8,
        fetch_buffer=32,
        load_queue=16,
        compute_queue=16,
        store_queue=16,
        mul_slots=5,
        dispatch_stages=3,
    ),
)
"""The machines of the first generation; each has a namesake of the second."""

NAMED: dict[str, Config] = {
    config.name: config
    for config in (
        *_FIRST,
        *(replace(one, name=f"{one.name}-int8", post=1, **_SECOND.get(one.name, {})) for one in _FIRST),
    )
}
"""The named configurations: stock VTA, the classic 8x8x8 core, one for fuzzing, one for an ECP5-85F; the
same with the second generation's extensions, as ``vta-int8``."""


_LARGEST_FILE = 1 << 20
"""Bytes; every field with its longest value is less than a thousandth."""


def load_config(name_or_path: str | Path) -> Config:
    """A named configuration, or one read from a file.

    The file is TOML if its name ends in ``.toml``, else JSON. It holds fields by name, perhaps with a
    ``name``; or what ``accel configs NAME --json`` prints; or the keys of VTA's ``vta_config.json``. Without
    a name it is called as the file is.

    Raises:
        ConfigError: unknown name, unreadable file, unknown key or bad value.
    """
    text = str(name_or_path)
    if text in NAMED:
        return NAMED[text]
    path = Path(name_or_path)
    if path.suffix not in (".json", ".toml") and not path.exists():
        raise ConfigError(
            f"{text!r} is no configuration; {nearest(text, NAMED)}; the path of a TOML or JSON file works too"
        )
    data = _printed(text, _read(path))
    name = "".join(one if one.isprintable() else "?" for one in path.stem)  # which may hold any byte
    if any(key.startswith("LOG_") or key in _VTA_IGNORED for key in data):
        return from_vta(data, name=name)
    return from_dict({"name": name} | data)


def _read(path: Path) -> dict[str, Any]:
    """What a file holds."""
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise ConfigError(f"configuration {str(path)!r} is larger than {_LARGEST_FILE:,} bytes")
        text = content.decode()
        data = tomllib.loads(text) if kind == "TOML" else json.loads(text)
    except OSError as error:
        raise ConfigError(f"configuration {str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"configuration {str(path)!r} is not {kind}: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"configuration {str(path)!r} holds {kind_of(data)}; a JSON object is needed")
    return data


def _printed(text: str, data: dict[str, Any]) -> dict[str, Any]:
    """The one configuration in what ``accel configs --json`` prints; anything else as it is."""
    if "configs" not in data:
        return data
    found = data["configs"]
    if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
        what = f"{len(found)} of them" if isinstance(found, list) else kind_of(found)
        raise ConfigError(
            f"configuration {text!r} has {what} in 'configs'; one is needed, as 'accel configs vta --json' "
            f"prints it"
        )
    return found[0]


def from_dict(data: Mapping[str, Any]) -> Config:
    """The inverse of :meth:`Config.to_dict`; fields that are missing take their defaults.

    Raises:
        ConfigError: for a key that is no field, or a bad value.
    """
    values = dict(data)
    name = values.pop("name", "custom")
    if not isinstance(name, str) or not name.isprintable():
        raise ConfigError(f"name is {shown(name)}; it must be a line of text")
    for key in values:
        if key not in SPECS:
            raise ConfigError(f"{key!r} is no configuration field; {nearest(key, SPECS)}")
    return Config(name=name, **{key: parse_quantity(key, value) for key, value in values.items()})


_VTA_IGNORED = {"TARGET", "HW_VER"}
_VTA_WIDTHS = {"LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3, "LOG_ACC_WIDTH": 5, "LOG_OUT_WIDTH": 3}
_VTA_KEYS = {
    "LOG_BATCH": ("batch",),
    "LOG_BLOCK": ("block_in", "block_out"),
    "LOG_BLOCK_IN": ("block_in",),
    "LOG_BLOCK_OUT": ("block_out",),
    "LOG_UOP_BUFF_SIZE": ("uop_bytes",),
    "LOG_INP_BUFF_SIZE": ("inp_bytes",),
    "LOG_WGT_BUFF_SIZE": ("wgt_bytes",),
    "LOG_ACC_BUFF_SIZE": ("acc_bytes",),
}


def from_vta(data: Mapping[str, Any], *, name: str = "custom") -> Config:
    """A configuration from the keys of VTA's ``vta_config.json``.

    Keys that are missing are stock, ``TARGET`` and ``HW_VER`` are ignored, and timing takes our
    defaults, since VTA's files hold none. ``LOG_BLOCK_IN`` and ``LOG_BLOCK_OUT`` win over ``LOG_BLOCK``.

    Raises:
        ConfigError: unknown key, or data widths other than int8 operands and results, int32 sums.
    """
    values: dict[str, int] = {}
    known = _VTA_IGNORED | _VTA_WIDTHS.keys() | _VTA_KEYS.keys() | {"LOG_OUT_BUFF_SIZE"}
    for key, value in data.items():
        if key not in known:
            raise ConfigError(f"{key!r} is no VTA configuration key; {nearest(key, known)}")
        if key in _VTA_IGNORED:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 40:
            raise ConfigError(f"{key} is {shown(value)}; it must be an integer logarithm in 0..40")
        if key in _VTA_WIDTHS and value != _VTA_WIDTHS[key]:
            raise ConfigError(
                f"{key} is {value}; operands and results are int8 and sums int32 here, "
                f"so it must be {_VTA_WIDTHS[key]}"
            )
    for key, names in _VTA_KEYS.items():  # in this order, so that IN and OUT win
        if key in data:
            values.update(dict.fromkeys(names, 1 << data[key]))
    config = Config(name=name, **values)
    out = data.get("LOG_OUT_BUFF_SIZE")
    if out is not None and 1 << out != config.acc_depth * config.out_element_bytes:
        raise ConfigError(
            f"LOG_OUT_BUFF_SIZE is {out}; out holds as many elements as acc, so it must be "
            f"{(config.acc_depth * config.out_element_bytes).bit_length() - 1}"
        )
    return config

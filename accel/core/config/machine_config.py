"""The class :class:`Config`: all numbers that define a machine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, SupportsIndex

from accel.base.arguments import plain_integer
from accel.base.errors import ConfigError, nearest
from accel.base.json_types import shown
from accel.base.records import replace
from accel.core.alu_operations import STOCK_NAMES, Operation, operations_by_code
from accel.core.config.alu_ops_field import alu_ops_text, checked_alu_ops, with_digests
from accel.core.config.config_fields import ConfigFields
from accel.core.config.field_spec import DRAM_ADDRESS_BITS, PAGE_BYTES, Kind, Spec
from accel.core.config.named_machines import NAMED_VALUES
from accel.core.scratchpad_specs import ACC, INP, PAR, PAR_INDEX_BITS, RES, TAB, UOP, WGT, scratchpads_of

ALU_OPS = "alu_ops"
_DEFAULT_TAP_BANKS = 4
"""Where ``inp_banks`` is 0: enough to read the three taps of a kernel row in one cycle."""


@dataclass(frozen=True, kw_only=True)
class Config(ConfigFields):
    """One machine. The defaults are those of stock VTA, :data:`NAMED` has other machines.

    For example, ``Config(name="mine", batch=2)`` is stock VTA with two rows in each inp, acc and out element.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "alu_ops", checked_alu_ops(self.alu_ops))
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
    def tab_depth(self) -> int:
        """Number of tables, 0 without tab."""
        return TAB.depth(self)

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

    # --- rates ---------------------------------------------------------------------------------

    @cached_property
    def bus_bytes(self) -> int:
        return self.bus_bits // 8

    @cached_property
    def macs_per_cycle(self) -> int:
        return self.batch * self.block_in * self.block_out

    @cached_property
    def lanes(self) -> int:
        """Values that the store unit requantizes per cycle: ``post_lanes``, or its default if 0."""
        return self.post_lanes or min(self.bus_bytes, self.out_element_bytes)

    @cached_property
    def depthwise(self) -> bool:
        """Whether the machine has depthwise MACs: ``post=1``, and ``block_in`` equals ``block_out``."""
        return bool(self.post) and self.block_in == self.block_out

    @cached_property
    def tap_banks(self) -> int:
        """Banks of inp for the taps of a depthwise MAC: ``inp_banks``, or its default if 0."""
        if self.inp_banks or not self.depthwise:
            return self.inp_banks or 1
        return min(_DEFAULT_TAP_BANKS, self.block_in, self.inp_depth)

    @cached_property
    def token_limit(self) -> int:
        """Largest value of a token counter."""
        return (1 << self.token_bits) - 1

    @cached_property
    def block_name(self) -> str:
        """The block sizes in intrinsic names: ``8x8`` if all are equal, otherwise for example ``1x16x16``."""
        if self.batch == self.block_in == self.block_out:
            return f"{self.batch}x{self.batch}"
        return f"{self.batch}x{self.block_in}x{self.block_out}"

    # --- variants and data ---------------------------------------------------------------------

    def override(
        self, values: Mapping[str, int | str], *, kinds: tuple[Kind, ...] = ("geometry", "timing")
    ) -> "Config":
        """Return this configuration with some fields replaced. Sizes may be written as ``64KiB``.

        Raises:
            ConfigError: unknown field, other kind of field, or bad value.
        """
        parsed: dict[str, Any] = {}
        for name, value in values.items():
            spec = SPECS.get(name)
            if spec is None and name != ALU_OPS:
                raise ConfigError(
                    f"{name!r} is not a configuration field; {nearest(name, [*SPECS, ALU_OPS])}"
                )
            kind = "geometry" if spec is None else spec.kind
            if kind not in kinds:
                raise ConfigError(
                    f"{name!r} is a {kind} field, bound when the program was compiled; "
                    f"only {' and '.join(kinds)} fields can be set here"
                )
            parsed[name] = value if spec is None else parse_quantity(name, value)
        return replace(self, **parsed)

    def variant(
        self, values: Mapping[str, int | str], *, kinds: tuple[Kind, ...] = ("geometry", "timing")
    ) -> "Config":
        """Do as :meth:`override`, and add the changes to the name, as in ``mine with batch=2``.

        A machine of :data:`NAMED` keeps its name, since its :attr:`label` lists the changes.
        """
        found = self.override(values, kinds=kinds)
        changes = _changes(self, found)
        return found if self.name in NAMED or not changes else replace(found, name=f"{self.name} {changes}")

    def with_geometry_of(self, other: "Config") -> "Config":
        """Return this timing on the geometry of ``other``. Fields that it lacks get their defaults."""
        lost = {name: getattr(Config, name) for name in SPECS.keys() - other.fields}
        return replace(self, **(other.geometry | lost))

    @property
    def geometry(self) -> dict[str, Any]:
        """The geometry fields by name."""
        numbers = {name: getattr(self, name) for name, spec in SPECS.items() if spec.kind == "geometry"}
        return numbers | {ALU_OPS: self.alu_ops}

    def field_text(self, name: str) -> str:
        """Return a field as ``--set`` reads it."""
        return alu_ops_text(self.alu_ops) if name == ALU_OPS else str(getattr(self, name))

    @cached_property
    def hardware(self) -> "Config":
        """The configuration that determines the hardware: no name, and :data:`RUN_FIELDS` at their defaults.

        ``post_lanes`` and ``inp_banks`` have their numbers instead of 0.
        """
        values = {name: getattr(self, name) for name in SPECS if name not in RUN_FIELDS}
        counts = {"post_lanes": self.lanes, "inp_banks": self.tap_banks} if self.post else {}
        return Config(alu_ops=self.alu_ops, **values | counts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for :func:`from_dict`. VTA's ``alu_ops`` are left out."""
        operations = {} if self.alu_ops == STOCK_NAMES else {ALU_OPS: with_digests(self.alu_ops)}
        return {"name": self.name} | {name: getattr(self, name) for name in self.fields} | operations

    @property
    def operations(self) -> Mapping[int, Operation]:
        """ALU's operations by number."""
        return operations_by_code(self.alu_ops)

    @cached_property
    def operation_codes(self) -> Mapping[str, int]:
        """Numbers of ALU's operations by name."""
        return {one.name: code for code, one in self.operations.items()}

    @property
    def fields(self) -> list[str]:
        """The fields that this machine has, in order of declaration, without features that are 0."""
        return [
            name
            for name, spec in SPECS.items()
            if (self.post or not spec.post) and (not spec.feature or getattr(self, name))
        ]

    @cached_property
    def label(self) -> str:
        """The name, with the changes of a machine of :data:`NAMED`: ``vta with batch=2``."""
        stock = NAMED.get(self.name)
        changes = "" if stock is None else _changes(stock, self)
        return f"{self.name} {changes}".rstrip()

    def __str__(self) -> str:
        return f"{self.label} ({self.batch}x{self.block_in}x{self.block_out}, {self.bus_bits}-bit bus)"


SPECS: dict[str, Spec] = {f.name: f.metadata["spec"] for f in fields(Config) if "spec" in f.metadata}
"""The declaration of every field except ``name``, in order."""

RUN_FIELDS = frozenset({"read_latency", "write_latency", "mem_base", "mem_size", "serial"})
"""Timing fields that the hardware does not depend on: memory latencies, and register settings of a run."""


def _checked_value(config: Config, name: str, spec: Spec) -> int:
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


_MAX_CHANGES_SHOWN = 3


def _changes(one: Config, other: Config) -> str:
    """Return for example ``with batch=2``, or an empty string."""
    fields = [
        f"{name}={other.field_text(name)}"
        for name in (ALU_OPS, *SPECS)
        if getattr(one, name) != getattr(other, name)
    ]
    more = len(fields) - _MAX_CHANGES_SHOWN
    shown = ", ".join(fields[:_MAX_CHANGES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"with {shown}" if fields else ""


_SUFFIX_FACTORS = {
    "": 1,
    "k": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gib": 1 << 30,
}


def parse_quantity(name: str, value: SupportsIndex | str | bool) -> int:
    """Parse an integer: decimal, hexadecimal, or with the suffix ``KiB``, ``MiB`` or ``GiB``.

    For flags, ``true`` and ``false`` are 1 and 0.

    Raises:
        ConfigError: it is something else.
    """
    text = str(value).strip().lower()
    if text in ("true", "false") and (name not in SPECS or SPECS[name].unit == "flag"):
        return int(text == "true")
    number = plain_integer(value)
    if number is not None:
        return number
    if re.fullmatch(r"0x[0-9a-f]+", text):
        return int(text, 16)
    match = re.fullmatch(r"(-?\d{1,40})\s*([a-z]*)", text)
    if match is None or match[2] not in _SUFFIX_FACTORS:
        raise ConfigError(f"{name} is {shown(value)}; it must be an integer, as 64, 0x40 or 64KiB")
    return int(match[1]) * _SUFFIX_FACTORS[match[2]]


NAMED: dict[str, Config] = {name: Config(name=name).override(values) for name, values in NAMED_VALUES.items()}
"""Stock VTA, the classic 8x8x8 GEMM core, a small machine for fuzzing, and one for an ECP5-85F. Each also
exists with ``post=1``, for example ``vta-int8``, and with all features, for example ``vta-npu``."""

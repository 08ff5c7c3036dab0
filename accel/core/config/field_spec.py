"""Declarations of configuration fields."""

from dataclasses import dataclass, field
from typing import Any, Literal

from accel.core.scratchpad_specs import UOP, bits_of

Kind = Literal["geometry", "timing"]

DRAM_ADDRESS_BITS = 40
"""A window has at most 1 TiB."""
PAGE_BYTES = 4096
"""No burst crosses a page boundary, as AXI4 demands."""
INSTRUCTION_BYTES = 16
UOP_BYTES = bits_of(UOP.dtype) // 8


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The declaration of one configuration field.

    Attributes:
        kind: ``geometry`` is fixed when a program is compiled, ``timing`` may differ from run to run.
        unit: for example ``bytes``.
        power_of_two: zero is also allowed.
        post: whether only machines with ``post=1`` have the field.
        feature: whether 0 means that the machine lacks the field, also in files, registers and hardware.
    """

    kind: Kind
    unit: str
    doc: str
    low: int
    high: int
    affects: str = ""
    power_of_two: bool = False
    post: bool = False
    optional: bool = False
    """Whether programs of older releases lack this geometry field."""
    feature: bool = False


def config_field(
    default: int,
    kind: Kind,
    unit: str,
    doc: str,
    low: int,
    high: int,
    *,
    affects: str,
    power_of_two: bool = False,
    post: bool = False,
    optional: bool = False,
    feature: bool = False,
) -> Any:
    """Declare a field of ``Config``."""
    spec = Spec(
        kind=kind,
        unit=unit,
        doc=doc,
        low=low,
        high=high,
        affects=affects,
        power_of_two=power_of_two,
        post=post,
        optional=optional or feature,
        feature=feature,
    )
    return field(default=default, metadata={"spec": spec})


def block_size_field(default: int, doc: str, *, affects: str) -> Any:
    return config_field(default, "geometry", "elements", doc, 1, 256, affects=affects, power_of_two=True)


def capacity_field(default: int, doc: str, *, affects: str, post: bool = False) -> Any:
    return config_field(
        default, "geometry", "bytes", doc, 1, 1 << 26, affects=affects, power_of_two=True, post=post
    )


def feature_field(unit: str, doc: str, high: int, *, affects: str) -> Any:
    """Declare a geometry field of the third generation, 0 by default."""
    return config_field(
        0, "geometry", unit, doc, 0, high, affects=affects, power_of_two=True, post=True, feature=True
    )


def timing_field(
    default: int,
    unit: str,
    doc: str,
    low: int,
    high: int,
    *,
    affects: str,
    power_of_two: bool = False,
    post: bool = False,
) -> Any:
    return config_field(
        default, "timing", unit, doc, low, high, affects=affects, power_of_two=power_of_two, post=post
    )

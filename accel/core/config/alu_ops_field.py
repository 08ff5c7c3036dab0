"""The configuration field ``alu_ops``."""

from collections.abc import Iterable, Sequence

from accel.base.errors import ConfigError
from accel.base.json_types import shown
from accel.core.alu_operations import STOCK_NAMES, find_operation

MAX_ALU_OPS = 1 << 4
"""ALU and ALU_HIGH have three bits each for the operation."""


def checked_alu_ops(value: object) -> tuple[str, ...]:
    """Return the names of operations, VTA's first.

    Args:
        value: a sequence, or text separated by commas. ``+absdiff`` is VTA's operations and ``absdiff``.
            ``absdiff@DIGEST`` requires that the installed declaration has this digest.

    Raises:
        ConfigError: an operation is not declared, stands twice, has another digest, or has no number.
    """
    names: list[str] = []
    for text in _texts(value):
        name, at, digest = text.strip().partition("@")
        if name in names:
            raise ConfigError(f"alu_ops has {name!r} twice")
        found = find_operation(name)
        if at and digest != found.digest:
            raise ConfigError(
                f"operation {name!r} has the digest {found.digest} in this installation; {digest} is needed, "
                f"so its declaration has changed: compile the program again, or install that declaration"
            )
        names.append(name)
    stock = [name for name in STOCK_NAMES if name in names]
    others = [name for name in names if name not in STOCK_NAMES]
    if len(STOCK_NAMES) + len(others) > MAX_ALU_OPS:
        raise ConfigError(
            f"alu_ops has {len(others)} operations in addition to VTA's; at most "
            f"{MAX_ALU_OPS - len(STOCK_NAMES)} have a number"
        )
    return (*stock, *others)


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, str):
        added = value.startswith("+")
        listed = [one for one in value.removeprefix("+").split(",") if one.strip()]
        return [*STOCK_NAMES, *listed] if added else listed
    if isinstance(value, Iterable):
        every = list(value)
        if all(isinstance(one, str) for one in every):
            return every
    raise ConfigError(
        f"alu_ops is {shown(value)}; it must be names of operations, as 'add,max' or '+absdiff'"
    )


def alu_ops_text(names: Sequence[str]) -> str:
    """Invert :func:`checked_alu_ops`, for example to ``+absdiff``."""
    stock, others = names[: len(STOCK_NAMES)], names[len(STOCK_NAMES) :]
    return f"+{','.join(others)}" if tuple(stock) == STOCK_NAMES else ",".join(names)


def with_digests(names: Sequence[str]) -> list[str]:
    """Return the names for a file, with the digests of all but VTA's."""
    return [name if name in STOCK_NAMES else f"{name}@{find_operation(name).digest}" for name in names]

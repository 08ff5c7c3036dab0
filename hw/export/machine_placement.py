"""Place and route machines on an ECP5-85F with a time limit."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accel.base.errors import DesignError
from accel.base.records import as_dict
from accel.base.result_cache import PLACEMENT_KIND, result_cache
from accel.core.config import Config
from accel.hw.core import Core
from accel.hw.export.nextpnr import Note
from accel.hw.export.place_and_route import Design, Placement


class TimeLimitError(DesignError):
    """A synthesis or placement beyond its time limit."""


def place_machine(
    config: Config,
    seeds: int,
    folder: Path,
    *,
    target: float | None = None,
    time_limit: float | None = None,
    note: Note = lambda _: None,
) -> list[Placement]:
    """Place and route a machine's hardware with the seeds 1 to ``seeds``.

    The result cache keeps placements by hardware, seed, target, and versions of the tools.

    Args:
        folder: existing folder for the tools' files.
        target: in MHz, see :class:`~accel.hw.export.place_and_route.Design`.
        time_limit: seconds for the synthesis, and for each placement.

    Raises:
        DesignError: the tools cannot complete the design, or not in time (TimeLimitError).
        EngineError: a tool is missing or was ended.
    """
    design = Design(Core(config.hardware), folder, "machine", target=target)
    return [_placed(design, seed, time_limit, note) for seed in range(1, seeds + 1)]


def _placed(design: Design, seed: int, time_limit: float | None, note: Note) -> Placement:
    cache = result_cache()
    key = f"{design.key}-{seed}"
    content = None if cache is None else cache.read(PLACEMENT_KIND, key)
    if content is not None:
        try:
            return Placement.from_dict(json.loads(content))
        except (ValueError, TypeError, KeyError):  # from a release with other attributes
            pass
    with _limited(time_limit, "synthesis", note) as limited:
        design.synthesize(limited)
    with _limited(time_limit, f"the placement with seed {seed}", note) as limited:
        placement = design.place(seed, limited)
    if cache is not None:
        cache.write(PLACEMENT_KIND, key, json.dumps(as_dict(placement)).encode())
    return placement


class _OverdueError(Exception):
    """No DesignError, which would let nextpnr try its next placer."""


@contextmanager
def _limited(seconds: float | None, step: str, note: Note) -> Iterator[Note]:
    """Yield a ``note`` that ends the tool after the time limit."""
    begin = time.monotonic()
    now = ""

    def limited(text: str) -> None:
        nonlocal now
        if seconds is not None and time.monotonic() - begin > seconds:
            raise _OverdueError
        now = text
        note(text)

    try:
        yield limited
    except _OverdueError:
        stage = f" (during {now})" if now and now != step else ""
        raise TimeLimitError(f"{step} takes more than {seconds:g} seconds{stage}") from None

"""Place and route cores on an ECP5-85F, and report their resources and frequency: ``make fpga``.

    python bench/resources.py [CONFIG ...] [--seeds 5] [-o docs/reference/resources.md]

The script needs the extra ``fpga`` (Yosys, nextpnr). A placement of ``ecp5`` takes 10 to 20 minutes, and is
cached in ``build/fpga`` by hardware and seed.
"""

import argparse
import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError
from accel.base.records import as_dict
from accel.core.config import NAMED, Config, load_config
from accel.hw.core import Core
from accel.hw.export.nextpnr import AVAILABLE, DEVICE, NAMES, RESOURCES, SPEEDS
from accel.hw.export.place_and_route import SPEED, Design, Hop, Placement, median_placement
from accel.operations import Operation

DEFAULT = ("tiny", "ecp5", "tiny-int8", "ecp5-int8", "ecp5-npu")
TARGETS = {"ecp5": 80.0, "ecp5-int8": 75.0, "ecp5-npu": 70.0}
"""Target frequency in MHz, which most placements reach."""
BEGIN, END = "<!-- placed: begin -->", "<!-- placed: end -->"
"""Marks around the tables in a page."""
LARGE = {"slots": 250, "flip_flops": 250, "block_ram": 1, "multipliers": 1}
"""Thresholds above which a part of the core has a row of its own."""
_CELLS = re.compile(r"_(?:TRELLIS_FF|LUT4|CCU2C|PFUMX|L6MUX21|MULT18X18D|DO|DP16KD)_|\$DPRAM_")
ROOT = Path(__file__).parents[1]

Placed = dict[str, list[Placement]]
"""Placements by the name of the configuration."""


def gops(config: Config, mhz: float) -> float:
    """Return billions of operations per second, two for each MAC."""
    return 2 * config.batch * config.block_in * config.block_out * mhz / 1000


def signals(path: Sequence[Hop]) -> Iterator[tuple[float, str, tuple[str, ...]]]:
    """Yield the signals of a path with source lines: arrival time in ns, name and lines.

    Consecutive hops with the same name and lines, such as a carry chain, count once.
    """
    arrived = 0.0
    before: tuple[str, tuple[str, ...]] | None = None
    for hop in path:
        if hop.sources:
            found = shown(hop.net), hop.sources
            if found != before:
                yield arrived, *found
            before = found
        arrived += hop.ns


def shown(name: str) -> str:
    """Remove Yosys's suffixes from a signal's name."""
    return re.sub(r"(\.\d+)+$", "", _CELLS.split(name)[0])


# --- the page --------------------------------------------------------------------------------------


def _rows(*rows: Sequence[str]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _ruler(columns: int) -> list[str]:
    return ["---", *["---:"] * (columns - 1)]


def whole_table(placed: Placed) -> str:
    head = ["configuration", *NAMES.values(), "MHz", "seeds", "GOPS"]
    rows = [head, _ruler(len(head))]
    for name, placements in placed.items():
        found = sorted(placement.mhz for placement in placements)
        one = median_placement(placements)
        frequency = f"{one.mhz:.1f}"
        if len(found) > 1:
            frequency += f" ({found[0]:.1f} to {found[-1]:.1f})"
        speed = gops(load_config(name), one.mhz)
        counts = (f"{one.resources[kind]:,} ({one.resources[kind] / AVAILABLE[kind]:.0%})" for kind in NAMES)
        rows.append([f"`{name}`", *counts, frequency, str(len(found)), f"{speed:.1f}"])
    rows.append([f"an {DEVICE} has", *(f"{AVAILABLE[kind]:,}" for kind in NAMES), "", "", ""])
    return _rows(*rows)


def path_table(placement: Placement) -> str:
    """Return the slowest path by signal and source line."""
    rows = [["ns", "signal", "declared in"], ["---:", "---", "---"]]
    if not placement.path[1].sources:  # the start has no line
        rows.append(["0.0", f"`{shown(placement.path[0].cell)}`", ""])
    for arrived, name, sources in signals(placement.path):
        rows.append([f"{arrived:.1f}", f"`{name}`", ", ".join(f"`{source}`" for source in sources)])
    whole = sum(hop.ns for hop in placement.path)
    rows.append([f"{whole:.1f}", f"`{shown(placement.path[-1].cell)}`", ""])
    return _rows(*rows)


def parts_table(placement: Placement) -> str:
    """Return resources by part, the largest first."""
    parts = placement.parts
    large = [name for name in parts if any(parts[name][kind] >= LARGE[kind] for kind in RESOURCES)]
    rows = [["part", *NAMES.values()], _ruler(1 + len(NAMES))]
    for name in sorted(large, key=lambda name: -parts[name]["slots"]):
        rows.append([f"`{name or 'core'}`", *(f"{parts[name][kind]:,}" for kind in NAMES)])
    rest = [parts[name] for name in parts.keys() - set(large)]
    rows.append(["all other parts", *(f"{sum(part[kind] for part in rest):,}" for kind in NAMES)])
    rows.append(["total", *(f"{placement.resources[kind]:,}" for kind in NAMES)])
    return _rows(*rows)


def made(placements: Sequence[Placement]) -> str:
    """Describe how placements were made."""
    ways: dict[str, list[str]] = {}
    for placement in placements:
        way = f"{placement.placer} placer, "
        way += "no target" if placement.target is None else f"a target of {placement.target:.4g} MHz"
        if placement.own_seed != placement.seed:
            way += f", nextpnr's seed {placement.own_seed}"
        ways.setdefault(way, []).append(f"{placement.seed} ({placement.mhz:.1f} MHz)")
    first = "Seeds" if len(placements) > 1 else "Seed"
    return f"{first} " + "; ".join(f"{', '.join(seeds)}: {way}" for way, seeds in ways.items()) + "."


def section(placed: Placed, speed: int) -> str:
    routing = {
        name: sum(hop.ns for hop in median_placement(some).path if hop.kind == "routing")
        for name, some in placed.items()
    }
    text = f"Speed grade {speed}.\n\n{whole_table(placed)}\n"
    for name, placements in placed.items():
        one = median_placement(placements)
        whole = sum(hop.ns for hop in one.path)
        text += (
            f"\n## The slowest path of `{name}`\n\n"
            f"{made(placements)}\n\n"
            f"With seed {one.seed}, {one.mhz:.1f} MHz: {whole:.1f} ns, {routing[name]:.1f} of them between "
            "cells. Arrival times of the named signals on it:\n\n"
            f"{path_table(one)}\n"
            f"\n## Parts of `{name}`\n\n{parts_table(one)}\n"
        )
    return text


def with_section(page: str, text: str) -> str:
    """Replace the text between a page's marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise AccelError(f"the page has no {BEGIN!r} followed by {END!r}, between which the tables belong")
    return f"{before}{begin}\n\n{text}\n{end}{after}"


def as_json(placed: Placed, speed: int) -> dict[str, Any]:
    return {
        "device": DEVICE,
        "speed": speed,
        "configs": [
            {
                "name": name,
                "mhz": median_placement(placements).mhz,
                "gops": gops(load_config(name), median_placement(placements).mhz),
                "placements": [as_dict(placement) for placement in placements],
            }
            for name, placements in placed.items()
        ],
    }


def with_operations(config: Config, files: Sequence[Path]) -> Config:
    """Add the operations that files declare to a machine. The files are executed."""
    declared = [one for file in files for one in runpy.run_path(str(file)).values()]
    added = [one.name for one in declared if isinstance(one, Operation)]
    return config.variant({"alu_ops": ",".join([*config.alu_ops, *added])}) if added else config


# --- the work --------------------------------------------------------------------------------------


def place_all(designs: dict[str, Design], seeds: int, jobs: int) -> Placed:
    """Place all designs with seed 1, then up to ``seeds``."""
    tasks = [(name, seed) for seed in range(1, seeds + 1) for name in designs]
    placed: Placed = {name: [] for name in designs}
    with _progress(len(tasks)) as (note, advance), ThreadPoolExecutor(jobs) as pool:

        def place(name: str, seed: int) -> tuple[str, Placement]:
            return name, designs[name].place(seed, lambda text: note(f"{name}, seed {seed}: {text}"))

        futures = [pool.submit(place, name, seed) for name, seed in tasks]
        try:
            for future in as_completed(futures):
                name, placement = future.result()
                placed[name].append(placement)
                advance(f"{name}, seed {placement.seed}: {placement.mhz:.1f} MHz")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return {name: sorted(some, key=lambda placement: placement.seed) for name, some in placed.items()}


@contextmanager
def _progress(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Yield functions that show the state and count a finished placement."""
    if not sys.stderr.isatty():
        yield lambda _: None, lambda _: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(text: str) -> None:
            bar.console.print(text, highlight=False)
            bar.advance(task)

        yield lambda text: bar.update(task, description=text), advance


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("configs", nargs="*", default=DEFAULT, metavar="CONFIG", help=", ".join(NAMED))
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="place with seeds 1 to N")
    parser.add_argument("--speed", type=int, choices=SPEEDS, default=SPEED, help="the device's speed grade")
    parser.add_argument(
        "--target",
        type=float,
        metavar="MHZ",
        help="frequency that paths must reach; it is lowered if the router does not finish\n"
        "(default: "
        + ", ".join(f"{mhz:g} for {name}" for name, mhz in TARGETS.items())
        + ", none for others)",
    )
    parser.add_argument(
        "--operations",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.py",
        help="add the ALU operations that this file declares (repeatable)",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="placements at a time, 1 GiB each")
    parser.add_argument("--kept", action="store_true", help="use only placements that exist, and make none")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "fpga", help="folder of the placements"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "-o", "--output", type=Path, help="write the tables into this page, between its marks"
    )
    chosen = parser.parse_args(arguments)
    if min(chosen.seeds, chosen.jobs) < 1:
        parser.error("--seeds and --jobs are at least 1")
    if chosen.target is not None and not 0 < chosen.target < inf:
        parser.error("--target is a number above 0")
    try:
        page = None if chosen.output is None else chosen.output.read_text(encoding="utf-8", errors="replace")
        if page is not None:
            with_section(page, "")
        configs = [with_operations(load_config(name), chosen.operations) for name in chosen.configs]
        designs = {
            config.name: Design(
                Core(config),
                chosen.folder,
                config.name,
                speed=chosen.speed,
                target=chosen.target or TARGETS.get(config.name),
            )
            for config in configs
        }
        if chosen.kept:
            placed = {name: found for name, design in designs.items() if (found := design.placed())}
            if not placed:
                raise AccelError(f"no placement of {', '.join(designs)} exists for the current hardware")
        else:
            placed = place_all(designs, chosen.seeds, chosen.jobs)
        if page is not None:
            write_atomically(chosen.output, with_section(page, section(placed, chosen.speed)).encode())
        if chosen.json:
            print(json.dumps(as_json(placed, chosen.speed), indent=2))
        elif page is None:
            print(section(placed, chosen.speed), end="")
    except AccelError as error:
        print(f"resources: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"resources: {error.filename!r} cannot be used: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

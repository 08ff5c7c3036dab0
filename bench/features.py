"""Measure what each feature of the third generation saves, by compiling networks without it.

    python bench/features.py MODEL... [--machine vta-npu] [--only FEATURE ...] [--no-run] [--json]

The script compiles each model with all features, without each of them, and without any. Moves are a feature
of the compiler. Without them, channels keep their order, no layer stores a result a second time, and the host
executes each Concat or Slice that cannot be an alias. The columns:

- programs: each ends where the host must compute something.
- host: the nodes that the host executes.
- MACs on the host.
- cycles: simulated, of all programs, without the host's time. ``--no-run`` leaves them out.
- wrong: values of the machine that differ from the same operators on the host.

``bench/package_networks.py`` makes models for it.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from models import measure
from rich.console import Console
from rich.progress import track

from accel.base.errors import AccelError
from accel.core.config import Config, load_config

MOVES = "moves"
FIELDS: Mapping[str, Mapping[str, int]] = {
    "tables": {"tab_bytes": 0},
    "products with residuals": {"res_mul": 0},
    "zero points of wgt": {"wgt_zero": 0},
}
"""Values of fields that switch a feature off."""
FEATURES = (*FIELDS, MOVES)
COLUMNS = ("programs", "host_nodes", "host_macs", "cycles", "wrong")


@contextmanager
def without_moves() -> Iterator[None]:
    """Compile without channel maps and without copies that layers store."""
    with (
        patch("accel.network.network.assign_channel_maps", lambda graph, _: (graph, ())),
        patch("accel.network.tensor_aliases.find_copy", lambda *_, **__: None),
    ):
        yield


def without(config: Config, features: Sequence[str]) -> Config:
    """Return a configuration without features. Their fields are 0."""
    changes = {name: value for one in features for name, value in FIELDS.get(one, {}).items()}
    return config.variant(changes) if changes else config


def measure_without(path: Path, config: Config, features: Sequence[str], *, run: bool) -> dict[str, Any]:
    """Return the figures of a model without features."""
    variant = without(config, features)
    if MOVES not in features:
        found = measure(path, variant, run=run)
    else:
        with without_moves():
            found = measure(path, variant, run=run)
    return {**{name: found.get(name) for name in ("model", *COLUMNS)}, "without": list(features)}


def cases(only: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the features to switch off: none, each of them, all."""
    return [(), *((one,) for one in only), *([tuple(only)] if len(only) > 1 else [])]


def label(features: Sequence[str]) -> str:
    if not features:
        return "with all features"
    return f"without {features[0]}" if len(features) == 1 else "without any of them"


def as_row(found: Mapping[str, Any]) -> str:
    values = ("" if found[name] is None else f"{found[name]:,}" for name in COLUMNS)
    return f"| {found['model']} | {label(found['without'])} | {' | '.join(values)} |"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = [
        "| network | | programs | host nodes | MACs on the host | cycles | wrong |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    return "\n".join([*head, *map(as_row, rows)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--machine", default="vta-npu")
    parser.add_argument("--only", nargs="+", choices=FEATURES, default=FEATURES, metavar="FEATURE")
    parser.add_argument("--no-run", action="store_true", help="compile only")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    console = Console(stderr=True)
    tasks = [(path, some) for path in chosen.models for some in cases(chosen.only)]
    try:
        config = load_config(chosen.machine)
        rows = [
            measure_without(path, config, some, run=not chosen.no_run)
            for path, some in track(tasks, "models", console=console)
        ]
    except AccelError as error:
        console.print(f"features: {error}", highlight=False, markup=False)
        return error.exit_code
    print(json.dumps({"rows": rows}, indent=2) if chosen.json else table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

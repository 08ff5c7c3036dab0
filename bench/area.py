"""Synthesize machines for the area model, and report its errors.

    python bench/area.py                      # the errors of the model on held-out machines
    python bench/area.py --fit 17             # also those of a fit to the first 17 machines, on the others
    python bench/area.py --count 5            # synthesize 5 more machines
    python bench/area.py --machines ecp5-npu  # synthesize named machines or files
    python bench/area.py --again 3            # synthesize the third machine of the file again, and compare

The script needs the extra ``synthesis``. Each machine takes one to four minutes, and is appended to
``accel/area/synthesized_machines.jsonl`` as soon as it is done, so the script can be stopped at any time.
Block RAMs and multipliers must equal those that the model computes.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.area.area_features import FLIP_FLOP_FEATURES, LUT_FEATURES, features
from accel.area.area_model import (
    DATA,
    FOLDS,
    Synthesized,
    block_rams,
    fit_area,
    held_out_errors,
    multipliers,
    read_machines,
)
from accel.base.errors import AccelError, ConfigError
from accel.core.config import Config, load_config
from accel.core.isa import check_encodable

FILE = Path(__file__).parents[1] / "accel" / "area" / DATA
_SEED = 37
_MAX_MACS = 128
"""Most MACs of a drawn machine. Larger ones take too long to synthesize."""
_MAX_LANES = 16
"""Most lanes of the ALU of a drawn machine, for the same reason."""


def drawn(seed: int = _SEED) -> Iterator[Config]:
    """Yield random machines without end."""
    source = random.Random(seed)
    while True:
        fields = _drawn_fields(source)
        lanes = fields["batch"] * fields["block_out"]
        if lanes > _MAX_LANES or lanes * fields["block_in"] > _MAX_MACS:
            continue
        try:
            config = Config(**fields).hardware
            check_encodable(config)
        except ConfigError:  # the fields exclude each other, or do not fit instructions
            continue
        yield config


def _drawn_fields(source: random.Random) -> dict[str, int]:
    def pick(*values: int) -> int:
        return source.choice(values)

    batch, block_in, block_out = pick(1, 1, 1, 2, 4), pick(1, 2, 4, 8, 16), pick(1, 2, 4, 8, 16)
    fetch_buffer = pick(8, 16, 32, 64)
    fields = {
        "batch": batch,
        "block_in": block_in,
        "block_out": block_out,
        "bus_bits": pick(64, 64, 64, 128, 256),
        "outstanding": pick(4, 8, 16, 32),
        "max_burst_beats": pick(16, 64, 256),
        "fetch_buffer": fetch_buffer,
        "fetch_chunk": min(pick(4, 8, 16), fetch_buffer),
        "load_queue": pick(2, 4, 8, 16, 32),
        "compute_queue": pick(2, 4, 8, 16, 32),
        "store_queue": pick(2, 4, 8, 16, 32),
        "loads_in_flight": pick(1, 2, 4, 8),
        "stores_in_flight": pick(1, 2, 4, 8),
        "tree_stages": pick(0, 1, 2, 4),
        "mul_slots": pick(1, 2, 3, 4, 5),
        "dispatch_stages": pick(0, 1, 2, 3),
        "uop_bytes": pick(256, 1024, 4096, 8192, 16384),
        "inp_bytes": batch * block_in * pick(8, 32, 128, 512, 1024, 2048),
        "wgt_bytes": block_in * block_out * pick(8, 32, 128, 512, 1024),
        "acc_bytes": 4 * batch * block_out * pick(8, 32, 128, 512, 1024, 2048),
    }
    if source.random() < 0.5:
        fields |= _drawn_post(source, fields)
    return fields


def _drawn_post(source: random.Random, fields: dict[str, int]) -> dict[str, int]:
    """Return the further fields of a machine with ``post=1``. Two of five are of the third generation."""

    def pick(*values: int) -> int:
        return source.choice(values)

    out_bytes = fields["batch"] * fields["block_out"]
    found = {
        "post": 1,
        "post_stages": pick(0, 2, 4, 8, 10, 13),
        "par_bytes": 8 * fields["block_out"] * pick(4, 16, 64, 256),
        "res_bytes": out_bytes * pick(4, 16, 64, 256, 512),
        "post_lanes": min(pick(1, 2, 2, 4, 8), fields["bus_bits"] // 8, out_bytes),
    }
    if fields["block_in"] == fields["block_out"]:
        found["inp_banks"] = min(pick(1, 2, 4), fields["block_in"])
    if source.random() < 0.4:
        found |= {"tab_bytes": pick(512, 1024, 2048), "res_mul": pick(0, 1), "wgt_zero": pick(0, 1)}
    return found


def fields_of(config: Config) -> dict[str, int]:
    """Return the fields of a machine that differ from their defaults."""
    return {
        name: getattr(config, name)
        for name in config.fields
        if getattr(config, name) != getattr(Config, name)
    }


def synthesized(config: Config) -> dict[str, int]:
    """Synthesize a machine, and compare the resources that the model computes exactly."""
    from accel.hw.export.ecp5_cells import synthesize  # the errors need no amaranth

    cells = synthesize(config)
    expected = {"block_ram": block_rams(config), "multipliers": multipliers(config)}
    for name, count in expected.items():
        if cells[name] != count:
            print(f"{name}: {cells[name]} synthesized, {count} computed, for {fields_of(config)}", flush=True)
    return cells


def synthesize_more(machines: Iterator[Config], count: int) -> None:
    """Append up to ``count`` machines that the file does not have."""
    known = [one.config for one in read()]
    for config in machines:
        if count < 1:
            return
        if config in known:
            continue
        begin = time.monotonic()
        cells = synthesized(config)
        line = json.dumps({"fields": fields_of(config), "cells": cells})
        with FILE.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        known.append(config)
        count -= 1
        print(f"{time.monotonic() - begin:.0f} s: {line}", flush=True)


def read() -> list[Synthesized]:
    return read_machines(FILE.read_text(encoding="utf-8")) if FILE.exists() else []


def errors(machines: Sequence[Synthesized]) -> dict[str, Any]:
    """Return the errors of the model on held-out machines, and its weights."""
    model = fit_area(machines)
    rows = [features(one.config) for one in machines]
    found: dict[str, Any] = {"machines": len(machines)}
    for name, names, fitted in (
        ("lut_slots", LUT_FEATURES, model.lut),
        ("flip_flops", FLIP_FLOP_FEATURES, model.flip_flop),
    ):
        counts = np.array([getattr(one, name) for one in machines], dtype=float)
        found[name] = {
            "median": fitted.error.median,
            "largest": fitted.error.largest,
            "errors": held_out_errors(rows, names, counts),
            "weights": dict(fitted.weights),
        }
    exact = [
        (block_rams(one.config), multipliers(one.config))
        == (one.cells["block_ram"], one.cells["multipliers"])
        for one in machines
    ]
    return found | {"exact": sum(exact)}


def later_errors(machines: Sequence[Synthesized], count: int) -> dict[str, list[float]]:
    """Return the relative errors on the machines after the first ``count``, by a fit to these."""
    model = fit_area(machines[:count])
    return {
        name: [fitted.predict(features(one.config)) / getattr(one, name) - 1 for one in machines[count:]]
        for name, fitted in (("lut_slots", model.lut), ("flip_flops", model.flip_flop))
    }


def report(found: dict[str, Any]) -> None:
    """Print the errors, and the weight of each feature."""
    total = found["machines"]
    print(f"{total} machines; block RAMs and multipliers are exact for {found['exact']} of them")
    for name in ("lut_slots", "flip_flops"):
        one = found[name]
        print(f"\n{name}: held-out error {one['median']:.1%} in the median, {one['largest']:.1%} at most")
        for feature, weight in one["weights"].items():
            print(f"  {feature:28} {weight:10.2f}")
    for name, one in found.get("later", {}).items():
        print(f"\n{name}: error on {len(one)} later machines {max(map(abs, one)):.1%} at most")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=0, metavar="N", help="synthesize N more drawn machines")
    parser.add_argument("--seed", type=int, default=_SEED, help="of the drawn machines")
    parser.add_argument("--machines", nargs="+", default=(), metavar="NAME", help="synthesize these")
    parser.add_argument(
        "--again", type=int, metavar="N", help="synthesize the Nth machine again, and compare"
    )
    parser.add_argument(
        "--fit", type=int, metavar="N", help="fit the first N machines, and predict the others"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    chosen = parser.parse_args(arguments)
    known = read()
    if chosen.fit is not None and not FOLDS <= chosen.fit < len(known):
        parser.error(f"--fit is {chosen.fit}; it must be in {FOLDS}..{len(known) - 1}")
    if chosen.again is not None and not 1 <= chosen.again <= len(known):
        parser.error(f"--again is {chosen.again}; the file has {len(known)} machines")
    try:
        if chosen.again is not None:
            one = known[chosen.again - 1]
            same = synthesized(one.config) == dict(one.cells)
            print("the cells are equal" if same else "the cells differ")
            return 0 if same else 1
        named = [load_config(name).hardware for name in chosen.machines]
        synthesize_more(iter(named), len(named))
        synthesize_more(drawn(chosen.seed), chosen.count)
        found = errors(read())
        if chosen.fit is not None:
            found["later"] = later_errors(read(), chosen.fit)
    except AccelError as error:
        print(f"area: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    if chosen.json:
        print(json.dumps(found, indent=2))
    else:
        report(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

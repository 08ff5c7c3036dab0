"""Both sides of each rule on many drawn graphs, bit for bit.

    python -m tests.rewriting.campaign [--count 1000] [--seed 0] [--rule NAME ...] [--json]

A rule fails if its sides differ, if a replacement does not fit, or if it applies to less than a fifth of its
graphs. The exit code is then 1. With the rule's name and the seed the failure can be repeated.
"""

import argparse
import json
import sys
import time

from accel.base.errors import AccelError
from accel.cli.terminal_output import progress_bar
from accel.network.graph_preparation import ONE_ROW_RULES
from accel.rewriting.rule_check import check_rule
from accel.rewriting.rules import RULES


def main() -> int:
    rules = {rule.name: rule for rule in (*RULES, *ONE_ROW_RULES)}
    parser = argparse.ArgumentParser(
        prog="python -m tests.rewriting.campaign", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--count", type=int, default=1000, help="instances of each rule")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--rule", action="append", choices=sorted(rules), metavar="NAME", help="only this rule"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()
    chosen = [rules[name] for name in arguments.rule or rules]
    found, failures = [], 0
    with progress_bar("rules") as progress:
        for number, rule in enumerate(chosen, 1):
            begin = time.perf_counter()
            one: dict[str, object] = {"rule": rule.name, "instances": arguments.count}
            try:
                one["applied"] = check_rule(rule, arguments.count, arguments.seed).applied
            except AccelError as error:
                failures += 1
                one["error"] = str(error)
            one["seconds"] = round(time.perf_counter() - begin, 1)
            found.append(one)
            if progress is not None:
                progress(number, len(chosen))
    if arguments.json:
        print(json.dumps({"seed": arguments.seed, "rules": found}, indent=2))
    else:
        for one in found:
            result = f"FAILED: {one['error']}" if "error" in one else f"applied to {one['applied']}"
            print(f"{one['rule']:32} {one['instances']} instances, {result}, {one['seconds']} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.compiler.operators_campaign``: random operators on random machines, against numpy.

Each program is proven and run. An operator may be too large for its machine, or need an ALU operation that
the machine lacks. Any other error, and any wrong element, ends the campaign with the number that repeats it.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import accel
from accel.base.errors import ScheduleError, ShapeError, TensorizeError
from accel.base.records import replace
from accel.core.config import Config
from tests.lockstep.machines_campaign import random_machine

KERNELS = (1, 2, 3, 5, (1, 3), (3, 1), (2, 3))
PADS = (0, 0, 1, 2, (1, 0), (0, 1, 1, 0), (2, 1, 0, 3))
EXPECTED = ("not even the smallest tiles", "needs the ALU operation")
"""Texts of errors that say why a machine cannot compute an operator."""


def random_scales(rng: Random, config: Config, channels: int) -> accel.Quantized:
    """Return a requantization with random scales and zero points, one scale or one for each channel."""
    scales = [rng.uniform(1e-4, 0.05) for _ in range(channels)]
    dtype, offset = rng.choice((("int8", 0), ("uint8", 128)))
    return accel.Quantized(
        scale=rng.choice((scales[0], scales)),
        input_zero=rng.choice((0, rng.randint(-128, 127))) + offset,
        input_dtype=dtype,
        weight_zero=rng.randint(-100, 100) if config.wgt_zero and rng.random() < 0.3 else 0,
        output_zero=rng.choice((0, rng.randint(-128, 127))),
        clip=rng.choice((None, (-100, 90))),
    )


def random_epilogue(rng: Random, config: Config, channels: int) -> dict[str, Any]:
    """Return the arguments of an operator's epilogue: requantization, or a shift and what goes with it."""
    if config.post and rng.random() < 0.5:
        return {"bias": rng.random() < 0.5, "quantized": random_scales(rng, config, channels)}
    found: dict[str, Any] = {name: rng.random() < 0.4 for name in ("bias", "relu", "residual")}
    return found | {"shift": rng.choice((None, rng.randint(0, 12)))}


def random_product(rng: Random, config: Config) -> accel.Workload:
    channels = rng.randint(1, 40)
    epilogue = random_epilogue(rng, config, channels)
    if rng.random() < 0.4:
        return accel.dense(rng.randint(1, 9), rng.randint(1, 60), channels, **epilogue)
    transposes = {name: rng.random() < 0.3 for name in ("transpose_a", "transpose_b")}
    return accel.gemm(rng.randint(1, 40), channels, rng.randint(1, 60), **transposes, **epilogue)


def random_convolution(rng: Random, config: Config) -> accel.Workload:
    """Also with groups, depthwise, and transposed."""
    groups = rng.choice((1, 1, rng.randint(2, 20)))
    inputs, channels = (groups * rng.choice((1, rng.randint(1, 20 // groups + 1))) for _ in range(2))
    picture = rng.randint(1, 2), inputs, rng.randint(1, 14), rng.randint(1, 14)
    kernel, epilogue = rng.choice(KERNELS), random_epilogue(rng, config, channels)
    if rng.random() < 0.2:
        steps = {"stride": rng.choice((1, 2, 3)), "padding": rng.choice((0, 0, 1))}
        return accel.conv2d_transpose(*picture, channels, kernel, **steps, **epilogue)
    return accel.conv2d(
        *picture,
        channels,
        kernel,
        stride=rng.choice((1, 1, 2, 3, (2, 1))),
        padding=rng.choice(PADS),
        dilation=rng.choice((1, 1, 2)),
        groups=groups,
        **epilogue,
    )


def random_pooling(rng: Random, config: Config) -> accel.Workload:
    picture = rng.randint(1, 2), rng.randint(1, 40), rng.randint(1, 14), rng.randint(1, 14)
    steps: dict[str, Any] = {"stride": rng.choice((None, 1, 2)), "padding": rng.choice((0, 0, 1))}
    if rng.random() < 0.5:
        return accel.max_pool2d(*picture, rng.choice(KERNELS), **steps)
    if config.post and rng.random() < 0.5:
        scale = accel.Quantized(scale=rng.uniform(1e-4, 0.05), input_zero=rng.randint(-128, 127))
        return accel.global_avg_pool2d(*picture, quantized=scale)
    return accel.avg_pool2d(*picture, rng.choice(KERNELS), count_padding=rng.random() < 0.5, **steps)


KINDS: tuple[Callable[[Random, Config], accel.Workload], ...] = (
    random_product,
    random_convolution,
    random_convolution,
    random_pooling,
)


def outcome(number: int) -> str:
    """Compile, prove and run an operator, and return what happened: ``right``, or why there is no program.

    Raises:
        AccelError: a reason that is none of :data:`EXPECTED`.
        AssertionError: an element is wrong.
    """
    rng = Random(number)
    config = replace(random_machine(rng, number), token_bits=8)
    try:
        workload = rng.choice(KINDS)(rng, config)
    except ShapeError:  # for example a kernel that is larger than its picture
        return "no such operator"
    try:
        program = accel.build(workload, config)
    except (ScheduleError, TensorizeError) as error:
        reason = next((text for text in EXPECTED if text in str(error)), None)
        if reason is None:
            raise
        return reason
    assert program.check().ok
    assert program.run(program.random_inputs(seed=number)).mismatches == 0
    return "right"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="Number of the first operator.")
    arguments = parser.parse_args()
    begin = time.monotonic()
    outcomes: Counter[str] = Counter()
    for number in range(arguments.seed, arguments.seed + arguments.count):
        try:
            outcomes[outcome(number)] += 1
        except Exception:
            print(f"operator {number} fails; --seed {number} --count 1 repeats it", file=sys.stderr)
            raise
    print(json.dumps({**outcomes, "seconds": round(time.monotonic() - begin)}))


if __name__ == "__main__":
    main()

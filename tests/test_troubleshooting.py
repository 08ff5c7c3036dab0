"""The messages that docs/how-to/troubleshooting.md explains are those that users see."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import accel
from accel import te
from accel.base.errors import AccelError
from accel.run.replay import load_any
from accel.run.result import Result
from accel.sweeps.sweep_journal import Journal

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^### (.*)$", PAGE, re.M)
MACHINE = accel.machine("gemm8x8")


def product(tile: int = 8, *, cached: bool = True) -> te.Schedule:
    """A product of 16 x 16, tensorized by blocks of ``tile`` along k."""
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    y, x = s[C].op.axis
    _, _, _, yi, _, _ = s[C].tile(y, x, k, 8, 8, tile)
    if cached:
        sums = s[s.cache_write(C, MACHINE.acc_buffer)]
        s.cache_read(A, MACHINE.inp_buffer)
        s.cache_read(B, MACHINE.wgt_buffer)
        sums.tensorize(yi, MACHINE.gemm)
    return s


def two_results() -> None:
    x = te.placeholder((8, 8), "int32", name="x")
    y = te.compute((8, 8), lambda i, j: te.max(x[i, j] + 1, x[i, j] >> 3), name="y", dtype="int8")
    s = te.create_schedule(y)
    stage = s[s.cache_write(y, MACHINE.acc_buffer)]
    s.cache_read(x, MACHINE.acc_buffer)
    stage.tensorize(stage.axis[0], MACHINE.alu)
    accel.build(s, MACHINE)


def unregistered() -> None:
    x = te.placeholder((8, 8), "int32", name="x")
    y = te.compute((8, 8), lambda i, j: x[i, j] >> 1, name="y", dtype="int8")
    halve = te.decl_tensor_intrin(
        y, lambda _, outputs: te.hardware_intrin("halve", outputs[0].access_ptr("w"))
    )
    s = te.create_schedule(y)
    stage = s[s.cache_write(y, MACHINE.acc_buffer)]
    s.cache_read(x, MACHINE.acc_buffer)
    stage.tensorize(stage.axis[0], halve)
    accel.build(s, MACHINE)


def run(name: str, **timing: int) -> None:
    load_any(ROOT / "tests" / "programs" / f"{name}.s").run(**timing)


def mismatch() -> None:
    program = accel.build(accel.gemm(8, 8, 8), MACHINE)
    result = program.run()
    Result(
        **{n: getattr(result, n) for n in result.__dataclass_fields__} | {"mismatches": 3}
    ).raise_if_wrong()


def no_matplotlib() -> None:
    saved = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "matplotlib"}
    sys.modules["matplotlib"] = None  # type: ignore[assignment]
    try:
        accel.sweep(accel.gemm(8, 8, 8)).plot("M", "cycles")
    finally:
        del sys.modules["matplotlib"]
        sys.modules.update(saved)


def damaged(folder: Path) -> None:
    (folder / "j").write_text("no\n")
    Journal(folder / "j")


PROVOKED: list[Callable[[Path], object]] = [
    lambda _: accel.build(accel.gemm(64, 64, 64), MACHINE, vthreads=5000),
    lambda _: accel.machine("gemm8x8", acc_bytes="64MiB"),
    lambda _: accel.build(product(cached=False), MACHINE),
    lambda _: accel.build(product(4), MACHINE),
    lambda _: two_results(),
    lambda _: unregistered(),
    lambda _: accel.build(accel.gemm(8, 8, 200_000), MACHINE),
    lambda _: accel.build(accel.gemm(8, 8, 8), MACHINE).run(inp_bytes=1024),
    lambda _: accel.build(accel.gemm(8, 8, 8), MACHINE).run({"A": np.zeros((8, 8))}),
    lambda _: run("fault_deadlock"),
    lambda _: load_any(ROOT / "tests/programs/order_race.s").check().raise_if_bad(),
    lambda _: run("fault_token_overflow"),
    lambda _: accel.build(accel.gemm(8, 8, 8), MACHINE).run(max_cycles=10),
    lambda _: run("fault_sram_inp"),
    lambda _: run("fault_dram_store"),
    lambda _: run("fault_residual_empty"),
    lambda _: mismatch(),
    lambda _: no_matplotlib(),
    damaged,
]
"""The code that causes each message, in the order of the page."""


def test_there_is_one_for_each() -> None:
    assert len(MESSAGES) == len(PROVOKED)


@pytest.mark.parametrize(("message", "provoke"), list(zip(MESSAGES, PROVOKED, strict=False)), ids=MESSAGES)
def test_the_message_is_what_users_see(
    message: str, provoke: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(AccelError) as error:
        provoke(tmp_path)
    pattern = re.escape(message).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, str(error.value).replace("\n", " ")), error.value

"""Delay the first LOAD of a buffer until another unit's LOAD has been requested.

For weights that ``start_after`` orders after the bias, with ``*`` at the sender and the receiver of the
token::

    before                              after
    compute  LOAD.UOP                   compute  LOAD.UOP
    compute  GEMM reset                 compute  GEMM reset   *
    compute  LOAD.ACC bias              compute  LOAD.ACC bias
    load     LOAD.INP                   load     LOAD.INP
    load     LOAD.WGT                   load     LOAD.WGT     *

The units share one bus. Before, the load unit fills all its buffers while the compute unit loads micro-ops.
So the bias waits for the bus, and the first GEMM for the bias. No instruction moves: the wait becomes a
token.
"""

from collections.abc import Collection

from accel.base.records import replace
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.core.isa import Load, Unit


class DelayFirstLoads(ReorderPass, frozen=True):
    """Let first LOADs of the load unit wait for the compute unit's instruction before the other LOAD."""

    name = "delay-first-loads"
    reason = (
        "The first GEMM needs a bias that the compute unit loads before all weights that fit their buffers."
    )

    def run(self, program: EmittedProgram) -> EmittedProgram:
        waits: dict[int, int] = {}
        for delayed, earlier in program.load_orders:
            late, early = (_first_load(program, statements) for statements in (delayed, earlier))
            if late is None or early is None:
                continue
            before = _last_of_compute(program, early)
            if before is not None and before < late:
                waits[late] = before
        return replace(program, waits={**program.waits, **waits})


def _first_load(program: EmittedProgram, statements: Collection[int]) -> int | None:
    return next(
        (
            position
            for position, one in enumerate(program.emitted)
            if one.statement in statements and isinstance(one.instruction, Load)
        ),
        None,
    )


def _last_of_compute(program: EmittedProgram, end: int) -> int | None:
    positions = range(end - 1, -1, -1)
    return next((n for n in positions if program.emitted[n].instruction.unit is Unit.COMPUTE), None)

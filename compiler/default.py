"""A schedule for those who bring none: big tiles on chip, one buffer set.

The result is tiled so that a tile's sums fit the accumulators; its operands are loaded in steps along the
reduce axis. Half of every scratchpad stays free for a second buffer set.
"""

from dataclasses import dataclass
from typing import Protocol

from accel.compiler.intrin import Intrinsic
from accel.compiler.schedule import Schedule, Stage, create_schedule
from accel.compiler.scope import Scope
from accel.compiler.workload import Workload
from accel.config import Config
from accel.errors import ScheduleError


class MachineLike(Protocol):
    """What a schedule needs to know of a machine."""

    @property
    def config(self) -> Config: ...

    @property
    def inp_buffer(self) -> Scope: ...

    @property
    def wgt_buffer(self) -> Scope: ...

    @property
    def acc_buffer(self) -> Scope: ...

    @property
    def gemm(self) -> Intrinsic: ...

    @property
    def alu(self) -> Intrinsic: ...


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Size of a tile in blocks: rows and columns of the result, and steps along the reduce axis."""

    rows: int
    columns: int
    depth: int


def choose_tiles(workload: Workload, config: Config) -> Tiles:
    """The tiles with the least DRAM traffic of those that fit into half of the scratchpads.

    Raises:
        ScheduleError: a scratchpad is too small for one block.
    """
    sizes = workload.parameters
    rows = -(-sizes["M"] // config.batch)
    columns = -(-sizes["N"] // config.block_out)
    depth = -(-sizes["K"] // config.block_in)
    inp, wgt, acc = config.inp_depth // 2, config.wgt_depth // 2, config.acc_depth // 2
    per_column = 1 if sizes["bias"] else 0
    best: tuple[float, Tiles] | None = None
    for tile_rows in range(1, min(rows, inp) + 1):
        tile_columns = min(columns, wgt, acc // (tile_rows + per_column))
        if not tile_columns:
            break
        inp_traffic = config.inp_element_bytes * -(-columns // tile_columns) / columns
        wgt_traffic = config.wgt_element_bytes * -(-rows // tile_rows) / rows
        tile_depth = min(depth, inp // tile_rows, wgt // tile_columns)
        cost = inp_traffic / config.block_in + wgt_traffic / config.block_in
        tiles = Tiles(rows=tile_rows, columns=tile_columns, depth=tile_depth)
        if best is None or cost < best[0]:
            best = (cost, tiles)
    if best is None:
        raise ScheduleError(
            f"configuration {config.name!r} has scratchpads of {config.inp_depth} inp, "
            f"{config.wgt_depth} wgt and {config.acc_depth} acc elements; "
            f"one tile needs at least 2, 2 and {2 * (1 + per_column)}"
        )
    return best[1]


def default_schedule(workload: Workload, machine: MachineLike) -> Schedule:
    """A schedule for a workload, made of the public operators only.

    Raises:
        ScheduleError: the machine is too small for it.
    """
    tiles = choose_tiles(workload, machine.config)
    config = machine.config
    s = create_schedule(workload.output)
    C = workload.output
    if workload.sums is C:
        sums = s[s.cache_write(C, machine.acc_buffer)]
        stages = [sums]
    else:
        sums = s[workload.sums]
        sums.set_scope(machine.acc_buffer)
        result = s[s.cache_write(C, machine.acc_buffer)]
        stages = [sums, result]
    y, x = s[C].op.axis
    _, xo, _, _ = s[C].tile(y, x, tiles.rows * config.batch, tiles.columns * config.block_out)
    for stage in stages:
        stage.compute_at(s[C], xo)
    if workload.parameters["bias"]:
        bias = s.cache_read(s.tensor("bias"), machine.acc_buffer)
        s[bias].compute_at(s[C], xo)
    inp = s.cache_read(s.tensor("A"), machine.inp_buffer)
    wgt = s.cache_read(s.tensor("B"), machine.wgt_buffer)
    ko = _tile_sums(sums, tiles, machine)
    s[inp].compute_at(sums, ko)
    s[wgt].compute_at(sums, ko)
    for stage in stages[1:]:
        _tile_result(stage, machine)
    return s


def _tile_sums(stage: Stage, tiles: Tiles, machine: MachineLike) -> str:
    """Blocks of the GEMM core inside steps along the reduce axis; returns the name of the steps' loop."""
    config = machine.config
    y, x = stage.axis
    (k,) = stage.reduce_axis
    ym, yi = stage.split(y, config.batch, names=("ym", "yi"))
    xm, xi = stage.split(x, config.block_out, names=("xm", "xi"))
    ko, kt = stage.split(k, tiles.depth * config.block_in, names=("ko", "kt"))
    km, ki = stage.split(kt, config.block_in, names=("km", "ki"))
    stage.reorder(ko, ym, xm, km, yi, xi, ki)
    stage.tensorize(yi, machine.gemm)
    return ko.name


def _tile_result(stage: Stage, machine: MachineLike) -> None:
    config = machine.config
    y, x = stage.axis
    ym, yi = stage.split(y, config.batch, names=("ym", "yi"))
    xm, xi = stage.split(x, config.block_out, names=("xm", "xi"))
    stage.reorder(ym, xm, yi, xi)
    stage.tensorize(yi, machine.alu)

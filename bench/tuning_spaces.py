"""The spaces of ``bench/tuning.py``: a computation without a planner, a convolution and a product."""

from collections.abc import Callable

import accel
from accel import te
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule import Schedule

STEPS, INPUTS, OUTPUTS, TAPS, DILATION = 56, 64, 64, 3, 2
"""Time steps, channels and taps of the temporal convolution, and the distance of its taps."""


def temporal_convolution() -> te.Tensor:
    """Return ``out[t][o] = clip(sum of x[t + 2 j][c] w[o][c][j] >> 8)``: a dilated convolution over time."""
    x = te.placeholder((STEPS + DILATION * (TAPS - 1), INPUTS), name="x")
    w = te.placeholder((OUTPUTS, INPUTS, TAPS), name="w")
    c, j = te.reduce_axis((0, INPUTS), name="c"), te.reduce_axis((0, TAPS), name="j")
    sums = te.compute(
        (STEPS, OUTPUTS), lambda t, o: te.sum(x[t + DILATION * j, c] * w[o, c, j], axis=[c, j]), name="sums"
    )
    return te.compute(
        (STEPS, OUTPUTS), lambda t, o: te.clip(sums[t, o] >> 8, -128, 127), name="out", dtype="int8"
    )


def temporal_template() -> Schedule:  # noqa: PLR0915  # one decision after the other
    """Return a schedule of the temporal convolution on ``vta``, with knobs."""
    machine = accel.machine("vta")
    tile_t = te.knob("tile_t", [4, 7, 8, 14, 28, 56])
    tile_o = te.knob("tile_o", [16, 32, 64])
    step_c = te.knob("step_c", [16, 32, 64])
    tiles = te.knob_order("tiles", ["t", "o"])
    taps = te.knob("taps", ["inside", "outside"])
    threads = te.knob("threads", [1, 2, 4])
    along = te.knob("along", ["t", "o", "sum"])
    load_x = te.knob("load_x", ["step", "tile"])
    load_w = te.knob("load_w", ["step", "tile"])
    te.require(threads > 1 or along == "t", "one thread runs along no loop")
    te.require(tile_t * tile_o // 16 * threads <= machine.config.acc_depth, "the tiles exceed acc_buffer")
    steps = -(-INPUTS // step_c) * (TAPS if taps == "outside" else 1)
    rows, columns = -(-STEPS // tile_t), -(-OUTPUTS // tile_o)
    te.require({"t": rows, "o": columns, "sum": steps}[along] >= threads, "a thread would have no work")
    te.require(load_x == "step" or steps > 1, "a tile has one step only")
    te.require(load_w == "step" or steps > 1, "a tile has one step only")
    te.require(along != "sum" or "tile" not in (load_x, load_w), "threads of the sum load their own operands")

    s = te.create_schedule(temporal_convolution())
    out, sums = s.tensor("out"), s.tensor("sums")
    s[sums].set_scope(machine.acc_buffer)
    results = s.cache_write(out, machine.acc_buffer)
    x = s.cache_read(s.tensor("x"), machine.inp_buffer)
    w = s.cache_read(s.tensor("w"), machine.wgt_buffer)

    t, o = s[out].op.axis
    to, oo, ti, oi = s[out].tile(t, o, tile_t, tile_o)
    loops = {"t": to, "o": oo}
    order = [loops[name] for name in tiles]
    thread = None
    if threads > 1 and along in loops:
        at = tiles.index(along)
        outer, thread = s[out].split(loops[along], threads)
        order[at] = outer
        order.append(thread)
        s[out].bind(thread, te.thread_axis("vthread"))
    s[out].reorder(*order, ti, oi)
    tile = order[-1]
    s[sums].compute_at(s[out], tile)
    s[results].compute_at(s[out], tile)

    t, o = s[sums].op.axis
    c, j = s[sums].op.reduce_axis
    step, ci = s[sums].split(c, step_c)
    cm, ci = s[sums].split(ci, 16)
    om, oi = s[sums].split(o, 16)
    tm, ti = s[sums].split(t, 1)
    if taps == "outside":
        s[sums].reorder(step, j, tm, om, cm, ti, oi, ci)
        step = j
    else:
        s[sums].reorder(step, tm, om, cm, j, ti, oi, ci)
    s[sums].tensorize(ti, machine.gemm)
    if threads > 1 and along == "sum":
        _, step = s[sums].split(step, threads)
        s[sums].bind(step, te.thread_axis("vthread"))
    for stage, place in ((x, load_x), (w, load_w)):
        if place == "step":
            s[stage].compute_at(s[sums], step)
        else:
            s[stage].compute_at(s[out], tile)

    t, o = s[results].op.axis
    om, oi = s[results].split(o, 16)
    tm, ti = s[results].split(t, 1)
    s[results].reorder(om, tm, ti, oi)
    s[results].tensorize(ti, machine.alu)
    return s


SPACES: dict[str, tuple[Callable[[], Schedule] | Workload, str]] = {
    "own": (temporal_template, "vta"),
    "convolution": (accel.conv2d(1, 16, 8, 8, 16, 3, padding=1, shift=8), "tiny"),
    "product": (accel.gemm(64, 64, 64, shift=7), "vta"),
}
"""By name, target and machine: a computation without a planner, a convolution on small scratchpads, and a
product on blocks of 16 x 16 x 16."""

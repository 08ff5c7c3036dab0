"""A template for tests: a product of 32 x 32 x 32 on ``vta``."""

import accel
from accel import te
from accel.compiler.schedule.schedule import Schedule


def product() -> Schedule:
    machine = accel.machine("vta")
    rows = te.knob("rows", [4, 8, 32])
    columns = te.knob("columns", [16, 32])
    order = te.knob_order("order", ["y", "x"])
    step = te.knob("step", [16, 32])
    te.require(rows * columns <= 512, "the tile is too large")
    s = te.create_schedule(accel.gemm(32, 32, 32, shift=7).output)
    out, sums = s.tensor("C"), s.tensor("S")
    s[sums].set_scope(machine.acc_buffer)
    results = s.cache_write(out, machine.acc_buffer)
    a, b = s.cache_read(s.tensor("A"), machine.inp_buffer), s.cache_read(s.tensor("B"), machine.wgt_buffer)
    yo, xo, yi, xi = s[out].tile(*s[out].op.axis, rows, columns)
    loops = {"y": yo, "x": xo}
    s[out].reorder(*(loops[name] for name in order), yi, xi)
    for stage in (sums, results):
        s[stage].compute_at(s[out], loops[order[-1]])
    y, x = s[sums].op.axis
    ko, ki = s[sums].split(s[sums].op.reduce_axis[0], step)
    km, ki = s[sums].split(ki, 16)
    ym, yi = s[sums].split(y, 1)
    xm, xi = s[sums].split(x, 16)
    s[sums].reorder(ko, ym, xm, km, yi, xi, ki)
    s[sums].tensorize(yi, machine.gemm)
    for stage in (a, b):
        s[stage].compute_at(s[sums], ko)
    y, x = s[results].op.axis
    ym, yi = s[results].split(y, 1)
    xm, xi = s[results].split(x, 16)
    s[results].reorder(ym, xm, yi, xi)
    s[results].tensorize(yi, machine.alu)
    return s

"""From loops to accelerator instructions: the published listing, as it runs here.

It differs from the lecture slides by imports, by ``name=`` and ``dtype=``, by lines that the slides leave
out, by ``fused_`` in place of ``fuse_``, and by the lines that print the nests.
"""

import accel
from accel import te as t

# --- Algorithm -------------------------------------------------------------------------------------

A = t.placeholder((1024, 1024), name="A")
B = t.placeholder((1024, 1024), name="B")
k = t.reduce_axis((0, 1024), name="k")
C = t.compute((1024, 1024), lambda y, x: t.sum(A[k, y] * B[k, x], axis=k), name="C", dtype="int8")
s = t.create_schedule(C.op)
print("# Algorithm")
print(t.format_nest(t.lower(s)))

# --- + Loop tiling ---------------------------------------------------------------------------------

y, x = s[C].op.axis
yo, xo, ko, yi, xi, ki = s[C].tile(y, x, k, 8, 8, 8)
print("# Loop tiling")
print(t.format_nest(t.lower(s)))

# --- + Cache data in the accelerator's special buffers, map to its tensor instructions -------------

vdla = accel.machine("gemm8x8")
CL = s.cache_write(C, vdla.acc_buffer)  # the tiles made so far move to the sums
AL = s.cache_read(A, vdla.inp_buffer)
BL = s.cache_read(B, vdla.wgt_buffer)
s[CL].tensorize(yi, vdla.gemm8x8)  # the copies move to the loops at which they hold one operand
print("# Caches and tensorization")
print(t.format_nest(t.tensorize(s)))

# --- Declaring the hardware intrinsic: behaviour, then lowering rule -------------------------------

w, x = t.placeholder((8, 8), name="w"), t.placeholder((8, 8), name="x")
k = t.reduce_axis((0, 8), name="k")
y = t.compute((8, 8), lambda i, j: t.sum(w[i, k] * x[j, k], axis=k), name="y")


def gemm_intrin_lower(inputs, outputs):
    ww_ptr = inputs[0].access_ptr("r")
    xx_ptr = inputs[1].access_ptr("r")
    zz_ptr = outputs[0].access_ptr("w")
    compute = t.hardware_intrin("gemm8x8", ww_ptr, xx_ptr, zz_ptr)
    reset = t.hardware_intrin("fill_zero", zz_ptr)
    update = t.hardware_intrin("fused_gemm8x8_add", ww_ptr, xx_ptr, zz_ptr)
    return compute, reset, update


gemm8x8 = t.decl_tensor_intrin(y.op, gemm_intrin_lower)

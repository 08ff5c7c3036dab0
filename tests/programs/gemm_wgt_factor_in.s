# The factors of the inner loop for wgt, and an outer loop that repeats everything.
.config tiny
.preset uop[0] .uop 0,0,0
.preset inp[0] .int8 1 1 0 0
.preset wgt[0] .int8 1*32 2*32 3*32
.preset acc[0] .int32 0*24

        GEMM uop_end=1 iter_out=3 iter_in=3 dst_factor_in=1 wgt_factor_in=1
        FINISH

.expect acc[0] .int32 6*8 12*8 18*8

# Consecutive micro-ops add to the same accumulator: by equal dst, and by a factor of zero.
.config tiny
.preset uop[0] .uop 4,0,0 4,1,0 4,0,0
.preset inp[0] .int8 1 0 0 0  10 0 0 0
.preset wgt[0] .int8 1*32
.preset acc[4] .int32 100*8

        GEMM uop_end=3 iter_out=5 iter_in=2
        GEMM uop_end=1
        FINISH

.expect acc[4] .int32 221*8

# Zero iterations, or uop_begin >= uop_end, do nothing; what an empty loop does not use is not checked.
.config tiny
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 9*8

        GEMM reset=1 uop_end=1 iter_out=0
        GEMM reset=1 uop_end=1 iter_in=0
        GEMM reset=1 uop_end=0
        GEMM reset=1 uop_begin=5 uop_end=5
        GEMM reset=1 uop_begin=7 uop_end=3
        GEMM reset=1 uop_end=511 iter_out=0
        FINISH

.expect acc[0] .int32 9*8

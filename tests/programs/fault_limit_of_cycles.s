# A run that takes longer than it may ends at the first instruction that has not retired.
.config tiny
.limit cycles=200
.preset uop[0] .uop 0,0,0
        GEMM reset=1 uop_end=1
long:   GEMM reset=1 uop_end=1 iter_in=10000
        FINISH
.expect fault limit at long

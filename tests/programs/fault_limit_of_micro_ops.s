# A count of micro-ops that is beyond what was allowed is told before the instruction starts.
.config tiny
.limit uops=10
.preset uop[0] .uop 0,0,0
        GEMM reset=1 uop_end=1 iter_in=8
long:   GEMM reset=1 uop_end=1 iter_in=3
        FINISH
.expect fault limit at long

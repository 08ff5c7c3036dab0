# Micro-ops of an instruction that fetch never hands out do not count.
.config tiny
.limit uops=10
.preset uop[0] .uop 0,0,0
        GEMM reset=1 uop_end=1 iter_in=8
last:   GEMM reset=1 uop_end=1 iter_in=3
.expect fault no-finish at last

# dst beyond acc, at the third micro-op; the two before have executed.
.config tiny
.preset uop[0] .uop 126,0,0
.preset acc[125] .int32 9*24

bad:    GEMM reset=1 uop_end=1 iter_in=4 dst_factor_in=1
        FINISH
.expect fault dst-index at bad
.expect acc[125] .int32 9*8 0*16

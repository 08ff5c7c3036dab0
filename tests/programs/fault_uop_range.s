# Micro-ops beyond the micro-op memory, in a loop that is not empty.
.config tiny uop_bytes=8 inp_bytes=8 wgt_bytes=64 acc_bytes=64
.preset uop[0] .uop 0,0,0 0,0,0
bad:    GEMM reset=1 uop_end=3
        FINISH
.expect fault uop-range at bad

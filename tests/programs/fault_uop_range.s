# Micro-ops beyond the micro-op memory, in a loop that is not empty.
.config tiny
.preset uop[254] .uop 0,0,0 0,0,0
bad:    GEMM reset=1 uop_begin=254 uop_end=257
        FINISH
.expect fault uop-range at bad

# FINISH must be the last instruction.
.config tiny
        GEMM uop_end=0
bad:    FINISH
        GEMM uop_end=0
        FINISH
.expect fault early-finish at bad

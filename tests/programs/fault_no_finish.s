# The last instruction must be FINISH.
.config tiny
        GEMM uop_end=0
bad:    GEMM uop_end=0
.expect fault no-finish at bad

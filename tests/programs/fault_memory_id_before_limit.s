# Micro-ops behind an instruction at which their unit stops do not count.
.config tiny
.limit uops=10
bad:    LOAD.OUT y_size=1 x_size=1
        GEMM reset=1 uop_end=1 iter_in=30
        FINISH
.expect fault memory-id at bad

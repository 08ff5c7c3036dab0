# Micro-ops of an instruction that is wrong by itself do not count.
.config tiny
.limit uops=10
        GEMM reset=1 uop_end=300
        FINISH
.expect fault uop-range at 0

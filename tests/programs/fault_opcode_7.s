# An opcode that does not exist; fetch finds it. What it has handed out before has run.
.config tiny
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 9*8

        GEMM reset=1 uop_end=1
bad:    UNKNOWN7
        FINISH

.expect fault opcode at bad

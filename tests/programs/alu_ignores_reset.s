# The reset flag matters to GEMM only.
.config tiny
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 5*8

        ALU.ADD reset=1 uop_end=1 use_imm=1 imm=2
        ALU.ADD reset=1 uop_end=1
        FINISH

.expect acc[0] .int32 14*8

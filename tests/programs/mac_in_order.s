# What a MAC overwrites, the next micro-op adds to, and what was added is overwritten, without a gap between them.
.config tiny-int8
.preset uop[0] .uop 0,0,0 0,1,0 0,0,0
.preset inp[0] .int16 1 0 0 0  10 0 0 0
.preset wgt[0] .int8 1*16
.preset acc[0] .int32 5*4

        ALU.ADD use_imm=1 imm=100 uop_end=1
        MAC overwrite=1 uop_end=1
        MAC uop_begin=1 uop_end=3
        GEMM uop_end=1
        ALU.ADD use_imm=1 imm=100 uop_end=1
        MAC overwrite=1 uop_begin=1 uop_end=2
        ALU.ADD uop_end=1
        FINISH

.expect acc[0] .int32 20*4

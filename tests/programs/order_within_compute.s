# The compute unit keeps program order: LOADs between GEMM and ALU see what was, and are seen by what follows.
.config tiny
.dram
uops:   .uop 1,0,0
        .align 32
s:      .int32 5*8
.preset uop[0] .uop 0,0,0
.preset inp[0] .int8 1 0 0 0
.preset wgt[0] .int8 1*32
.preset acc[0] .int32 0*8 0*8

        GEMM     uop_end=1 iter_in=20
        LOAD.ACC dram_base=s y_size=1 x_size=1
        GEMM     uop_end=1
        LOAD.UOP dram_base=uops y_size=1 x_size=1
        GEMM     uop_end=1 iter_in=3
        ALU.ADD  uop_end=1
        FINISH

.expect acc[0] .int32 6*8
.expect acc[1] .int32 9*8

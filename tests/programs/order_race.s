# Without a token nothing orders the LOAD and the GEMM that reads it.
.config tiny
.dram
x:      .int8 1 2 3 4
.preset uop[0] .uop 0,0,0

        LOAD.INP dram_base=x y_size=1 x_size=1
        GEMM     uop_end=1
        FINISH

.expect race

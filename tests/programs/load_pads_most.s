# All four pads at 15: 31 rows of 31 elements, one of which comes from DRAM.
.config gemm8x8
.dram
data:   .int8 5*64

.preset inp[961] .int8 9*64

        LOAD.INP  dram_base=data y_size=1 x_size=1 y_pad_0=15 y_pad_1=15 x_pad_0=15 x_pad_1=15
        FINISH

.expect inp[0] .int8 0*30720 5*64 0*30720 9*64

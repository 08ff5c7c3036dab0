# Zero rows and zero elements around what LOAD.INP copies: each side alone, all together, and the most there can be.
.config tiny
.dram
data:   .int8 1*4 2*4 3*4 4*4

.preset inp[0] .int8 9*160

        LOAD.INP  sram_base=0 dram_base=data y_size=1 x_size=1 x_pad_0=2
        LOAD.INP  sram_base=4 dram_base=data y_size=1 x_size=1 x_pad_1=2
        LOAD.INP  sram_base=8 dram_base=data y_size=1 x_size=2 x_stride=2 y_pad_0=1
        LOAD.INP  sram_base=13 dram_base=data y_size=1 x_size=2 x_stride=2 y_pad_1=1
        LOAD.INP  sram_base=20 dram_base=data y_size=2 x_size=2 x_stride=2 y_pad_0=1 y_pad_1=1 x_pad_0=1 x_pad_1=1
        LOAD.INP  sram_base=64 dram_base=data+1 y_size=1 x_size=1 y_pad_0=1 x_pad_0=15 x_pad_1=15
        FINISH

.expect inp[0] .int8 0*8 1*4 9*4
.expect inp[4] .int8 1*4 0*8 9*4
.expect inp[8] .int8 0*8 1*4 2*4 9*4
.expect inp[13] .int8 1*4 2*4 0*8 9*4
.expect inp[20] .int8 0*16 0*4 1*4 2*4 0*4 0*4 3*4 4*4 0*4 0*16 9*4
.expect inp[64] .int8 0*124 0*60 2*4 0*60

# The last element of each scratchpad can be reached.
.config tiny
.dram
data:   .int8 1*4 2*4 3*24
sums:   .int32 4*8

        LOAD.INP  sram_base=126 dram_base=data y_size=2 x_size=1 x_stride=1
        LOAD.WGT  sram_base=127 dram_base=data y_size=1 x_size=1
        LOAD.ACC  sram_base=126 dram_base=sums y_size=1 x_size=1 x_pad_0=1
        LOAD.UOP  sram_base=255 dram_base=data y_size=1 x_size=1
        FINISH

.expect inp[126] .int8 1*4 2*4
.expect wgt[127] .int8 1*4 2*4 3*24
.expect acc[126] .int32 0*8 4*8
.expect uop[255] .hex 01010101

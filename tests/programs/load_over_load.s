# Loads of one unit to the same elements: the later one stays, whichever is longer.
.config tiny
.dram
data:   .int8 1*128 2*128

        LOAD.INP  dram_base=data y_size=1 x_size=32
        LOAD.INP  sram_base=4 dram_base=data+32 y_size=1 x_size=2
        LOAD.INP  sram_base=5 x_size=1 y_pad_0=2
        FINISH

.expect inp[0] .int8 1*16 2*4 0*8 1*100

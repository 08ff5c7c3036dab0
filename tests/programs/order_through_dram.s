# What is stored is loaded again: the token goes from store over compute to load.
.config tiny
.dram
t:      .int8 9*32
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 1 2 3 4 5 6 7 8

        STORE.OUT     dram_base=t y_size=1 x_size=1            >compute
        LOAD.ACC_8BIT sram_base=3 dram_base=t y_size=1 x_size=1   <store >load
        LOAD.INP      sram_base=5 dram_base=t y_size=1 x_size=2   <compute
        FINISH

.expect acc[3] .int32 1..8
.expect inp[5] .int8 1..8

# LOAD copies rows that are a stride apart to consecutive elements, in each memory.
.config tiny
.dram
bytes:  .int8 0..127 -128..-1           # 256 bytes
sums:   .int32 0..127

.preset inp[9] .int8 9*4
.preset inp[16] .int8 9*4

        LOAD.INP  sram_base=10 dram_base=bytes y_size=3 x_size=2 x_stride=5
        LOAD.WGT  sram_base=3 dram_base=bytes+1 y_size=2 x_size=1 x_stride=3
        LOAD.ACC  sram_base=127 dram_base=sums+2 y_size=1 x_size=1
        LOAD.ACC  dram_base=sums y_size=2 x_size=1 x_stride=4
        FINISH

.expect inp[9] .int8 9*4 0..7 20..27 40..47 9*4
.expect wgt[3] .int8 32..63 -128..-97
.expect acc[127] .int32 16..23
.expect acc[0] .int32 0..7 32..39

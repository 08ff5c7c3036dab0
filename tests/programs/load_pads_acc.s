# Zero rows and zero elements around what LOAD.ACC copies: each side alone, all together, and the most there can be.
.config tiny
.dram
data:   .int32 1*8 2*8 3*8 4*8

.preset acc[0] .int32 9*320

        LOAD.ACC  sram_base=0 dram_base=data y_size=1 x_size=1 x_pad_0=2
        LOAD.ACC  sram_base=4 dram_base=data y_size=1 x_size=1 x_pad_1=2
        LOAD.ACC  sram_base=8 dram_base=data y_size=1 x_size=2 x_stride=2 y_pad_0=1
        LOAD.ACC  sram_base=13 dram_base=data y_size=1 x_size=2 x_stride=2 y_pad_1=1
        LOAD.ACC  sram_base=20 dram_base=data y_size=2 x_size=2 x_stride=2 y_pad_0=1 y_pad_1=1 x_pad_0=1 x_pad_1=1
        LOAD.ACC  sram_base=64 dram_base=data+1 y_size=1 x_size=1 y_pad_0=1 x_pad_0=15 x_pad_1=15
        FINISH

.expect acc[0] .int32 0*16 1*8 9*8
.expect acc[4] .int32 1*8 0*16 9*8
.expect acc[8] .int32 0*16 1*8 2*8 9*8
.expect acc[13] .int32 1*8 2*8 0*16 9*8
.expect acc[20] .int32 0*32 0*8 1*8 2*8 0*8 0*8 3*8 4*8 0*8 0*32 9*8
.expect acc[64] .int32 0*248 0*120 2*8 0*120

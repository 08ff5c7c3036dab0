# Zero rows and zero elements around what LOAD.WGT copies: each side alone, all together, and the most there can be.
.config tiny
.dram
data:   .int8 1*32 2*32 3*32 4*32

.preset wgt[0] .int8 9*1280

        LOAD.WGT  sram_base=0 dram_base=data y_size=1 x_size=1 x_pad_0=2
        LOAD.WGT  sram_base=4 dram_base=data y_size=1 x_size=1 x_pad_1=2
        LOAD.WGT  sram_base=8 dram_base=data y_size=1 x_size=2 x_stride=2 y_pad_0=1
        LOAD.WGT  sram_base=13 dram_base=data y_size=1 x_size=2 x_stride=2 y_pad_1=1
        LOAD.WGT  sram_base=20 dram_base=data y_size=2 x_size=2 x_stride=2 y_pad_0=1 y_pad_1=1 x_pad_0=1 x_pad_1=1
        LOAD.WGT  sram_base=64 dram_base=data+1 y_size=1 x_size=1 y_pad_0=1 x_pad_0=15 x_pad_1=15
        FINISH

.expect wgt[0] .int8 0*64 1*32 9*32
.expect wgt[4] .int8 1*32 0*64 9*32
.expect wgt[8] .int8 0*64 1*32 2*32 9*32
.expect wgt[13] .int8 1*32 2*32 0*64 9*32
.expect wgt[20] .int8 0*128 0*32 1*32 2*32 0*32 0*32 3*32 4*32 0*32 0*128 9*32
.expect wgt[64] .int8 0*992 0*480 2*32 0*480

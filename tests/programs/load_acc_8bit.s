# ACC_8BIT sign-extends bytes; its DRAM element is as many bytes as acc has numbers.
.config tiny
.dram
bytes:  .int8 -128 -1 0 1 127 -2 2 100  10..17  -10..-3

        LOAD.ACC_8BIT sram_base=4 dram_base=bytes y_size=2 x_size=1 x_stride=2
        LOAD.ACC_8BIT sram_base=8 dram_base=bytes+1 y_size=1 x_size=1 x_pad_0=1 x_pad_1=1
        FINISH

.expect acc[4] .int32 -128 -1 0 1 127 -2 2 100 -10..-3
.expect acc[8] .int32 0*8 10..17 0*8

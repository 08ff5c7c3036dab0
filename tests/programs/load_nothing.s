# x_size 0: tokens only, and nothing else is looked at, neither memory id nor addresses nor pads.
.config tiny mem_size=64KiB
.preset inp[0] .int8 9*4
.preset acc[0] .int32 9*8

        LOAD.INP  sram_base=65535 dram_base=0xffffffff y_size=65535 y_pad_0=15 x_pad_1=15   >compute
        LOAD.MEM7 sram_base=65535 dram_base=0xffffffff y_size=3 x_stride=65535   <load
        LOAD.OUT  y_size=1
        LOAD.ACC  y_size=1 x_pad_0=1 x_pad_1=1
        LOAD.INP  y_size=1 x_pad_0=1
        FINISH

.expect inp[0] .int8 9*4
.expect acc[0] .int32 9*8

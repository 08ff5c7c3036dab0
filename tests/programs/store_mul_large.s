# The largest factor, offsets of 41 bits, the largest shift, and differences that wrap at 9 bits.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 127 -128 0 1
        .int8 127 -128 0 1
y:      .int8 99*8
.preset acc[0] .int32 500 -500 0 1  500 -500 0 1

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=2
        SET.OUT low=-64 high=63 left_zero=-64 right_zero=-128 offset=-0x10000000000 shift=41
        SET.SUM zero=-7 low=-256 high=255 left_multiplier=0x7fffffff
        STORE.MUL dram_base=y y_size=1 x_size=1
        SET.OUT low=-64 high=63 left_zero=-256 right_zero=255 offset=0xffffffffff shift=38
        SET.SUM low=-256 high=127 left_multiplier=0x40000000
        STORE.MUL sram_base=1 dram_base=y+1 y_size=1 x_size=1
        FINISH

# 63 + 256 is -193 in 9 bits, and -128 - 255 is 129.
.expect dram[y] .int8 24 -7 0 1  100 101 127 127

# Factors of 31 bits, an offset of 41, and the largest shift; the requantized side is clamped before it is added.
.config tiny-int8
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 127 -128 0 1
y:      .int8 99*8
.preset acc[0] .int32 500 -500 0 1  500 -500 0 1

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=2 x_size=1
        SET.OUT low=-64 high=63 left_zero=-256 right_zero=255 offset=-0x10000000000 shift=38
        SET.SUM low=-256 high=255 left_multiplier=0x40000000 right_multiplier=0x40000000
        STORE.ADD dram_base=y y_size=1 x_size=1
        SET.OUT low=-64 high=63 offset=0xffffffffff shift=41
        SET.SUM zero=-7 low=-256 high=255 left_multiplier=0x7fffffff right_multiplier=0
        STORE.ADD dram_base=y+1 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 -3 -5 -4 -4  -6 -7 -7 -6

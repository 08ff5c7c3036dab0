# Outputs are requantized: a bias and a scale per channel, rounding half to even, a zero point and bounds.
.config tiny-int8
.dram
p:      .int32 0 0x18800000  1 0x18800000  0 0x18800000  -2 0x18800000
y:      .int8 99*16
.preset acc[0] .int32 5 5 -5 -5  1000 -1000 7 -7  0 0x7fffffff 0 0

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT zero=3 low=-20 high=20
        STORE.REQ dram_base=y y_size=1 x_size=3
        FINISH

.expect dram[y] .int8 5 6 1 -1  20 -20 7 -1  3 -20 3 2  99*4

# A value is multiplied by a residual: zero points on both sides, a factor, an offset, ties to even.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 4 -2 -3 100  -1 -4 1 -128
y:      .int8 99*8
.preset acc[0] .int32 10 1 2 -10  2 3 4 -1000

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=2
        SET.OUT low=-128 high=127 left_zero=1 right_zero=-2 offset=2 shift=2
        SET.SUM zero=5 low=-50 high=50 left_multiplier=3 right_multiplier=1000
        STORE.MUL dram_base=y y_size=1 x_size=2
        FINISH

# (9 * 6 * 3 + 2) / 4 is 41, (1 * -1 * 3 + 2) / 4 rounds to 0, (2 * -2 * 3 + 2) / 4 is -2.5, which rounds to -2.
.expect dram[y] .int8 46 5 5 -50  6 3 12 50

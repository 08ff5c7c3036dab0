# A residual is added: both sides with factors and zero points, an offset, a shift that rounds half to even.
.config tiny-int8
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 4 -2 -2 100  -1 -1 -1 -128
y:      .int8 99*8
.preset acc[0] .int32 10 1 2 -10  2 3 4 -1000

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=2
        SET.OUT low=-128 high=127 left_zero=1 right_zero=-2 offset=1 shift=2
        SET.SUM zero=5 low=-50 high=50 left_multiplier=2 right_multiplier=3
        STORE.ADD dram_base=y y_size=1 x_size=2
        FINISH

.expect dram[y] .int8 14 5 6 50  7 7 7 -50

# Residuals may be uint8, and so may the sums.
.config tiny-int8
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 -1 -128 0 127
        .int8 -1 -128 0 127
y:      .int8 99*8
.preset acc[0] .int32 0*8

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=2
        SET.SUM high=255 right_multiplier=1
        SET.OUT unsigned=1
        STORE.ADD dram_base=y y_size=1 x_size=1
        SET.OUT
        STORE.ADD dram_base=y+1 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 -1 -128 0 127  0 0 0 127

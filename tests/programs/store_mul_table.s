# The byte of a table is multiplied by a residual, or a residual is added to it: an int8, or a uint8.
.config tiny-npu
.dram
t:      .int8 10 -1 -128 127 8*252
        .int8 2 3 4 5 6*252
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 2 2 1 1  3 3 3 -1
y:      .int8 99*24
.preset acc[0] .int32 0 1 2 3

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.TAB dram_base=t y_size=2 x_size=1 x_stride=1
        LOAD.RES dram_base=r y_size=1 x_size=2
        SET.OUT low=-128 high=127
        SET.SUM low=-128 high=127 left_multiplier=1 right_multiplier=1
        STORE.MUL dram_base=y y_size=1 x_size=1 table=1
        STORE.ADD dram_base=y+1 y_size=1 x_size=1 table=1
        LOAD.RES dram_base=r y_size=2 x_size=1 x_stride=1
        SET.OUT low=-128 high=127 shift=1 table_unsigned=1
        STORE.MUL dram_base=y+2 y_size=1 x_size=1 table=1
        STORE.ADD dram_base=y+3 y_size=1 x_size=1 table=2
        LOAD.RES dram_base=r y_size=1 x_size=2
        STORE.ADD dram_base=y+4 y_size=1 x_size=1 table=1
        STORE.MUL dram_base=y+5 y_size=1 x_size=1 table=2
        FINISH

.expect dram[y] .int8 20 -2 -128 127  13 2 -125 126
.expect dram[y+8] .int8 10 127 64 64  2 3 4 2
.expect dram[y+16] .int8 6 127 64 64  3 4 6 -2

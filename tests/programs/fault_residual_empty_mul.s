# A STORE.MUL takes what was loaded before it; nothing of it is written if that is not enough.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 3*12
y:      .int8 9*16
.preset acc[0] .int32 2*16

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=3
        SET.OUT high=127
        SET.SUM high=127 left_multiplier=1
        STORE.MUL dram_base=y y_size=1 x_size=2
bad:    STORE.MUL dram_base=y+2 y_size=1 x_size=2
        FINISH
.expect fault residual-empty at bad
.expect dram[y] .int8 6*8 9*8

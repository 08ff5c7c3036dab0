# A STORE with hold takes one residual, one without any elements takes none, and the third one finds none.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 3*4
y:      .int8 9*48
.preset acc[0] .int32 2*16

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.RES dram_base=r y_size=1 x_size=1
        SET.OUT high=127
        SET.SUM high=127 left_multiplier=1
        STORE.MUL dram_base=y y_size=1 x_size=4 hold=1
        STORE.MUL dram_base=y+4 x_size=4 hold=1
bad:    STORE.MUL dram_base=y+8 y_size=1 x_size=4 hold=1
        FINISH
.expect fault residual-empty at bad
.expect dram[y] .int8 6*16 9*32

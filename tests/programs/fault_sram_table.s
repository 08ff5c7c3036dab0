# A table beyond the four of tab. The field is an element's index plus 1.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
y:      .int8 9*8
.preset acc[0] .int32 0*4
.preset tab[3] .int8 5*256

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT high=127
        STORE.REQ dram_base=y y_size=1 x_size=1 table=4
bad:    STORE.REQ dram_base=y+1 y_size=1 x_size=1 table=5
        FINISH
.expect fault sram-range at bad
.expect dram[y] .int8 5*4 9*4

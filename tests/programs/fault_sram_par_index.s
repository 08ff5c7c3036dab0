# The highest index into par counts: that of the last row.
.config tiny-int8
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
y:      .int8 9*16
.preset acc[0] .int32 1*12

        LOAD.PAR sram_base=15 dram_base=p y_size=1 x_size=1
        SET.OUT high=127
        STORE.REQ dram_base=y y_size=1 x_size=1 par=15 par_y=1
bad:    STORE.REQ dram_base=y+1 y_size=2 x_size=1 x_stride=1 par=15 par_y=1
        FINISH
.expect fault sram-range at bad
.expect dram[y] .int8 1*4 9*12

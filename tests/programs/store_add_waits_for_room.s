# A LOAD of residuals waits until there is room, and a STORE until what it takes has come; nothing else orders them.
.config tiny-int8 read_latency=40
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 1*64 2*64 3*4
y:      .int8 99*132
.preset acc[0] .int32 1*64

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT low=-128 high=127
        SET.SUM low=-128 high=127 left_multiplier=1 right_multiplier=1
        LOAD.RES dram_base=r y_size=1 x_size=16
        STORE.ADD dram_base=y y_size=1 x_size=16
        LOAD.RES dram_base=r+16 y_size=1 x_size=16
        STORE.ADD dram_base=y+16 y_size=1 x_size=16
        LOAD.RES dram_base=r+32 y_size=1 x_size=1
        STORE.ADD dram_base=y+32 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 2*64 3*64 4*4

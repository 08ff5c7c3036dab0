# LOADs of par and STOREs that use it follow one another: a STORE has what was loaded before it, not behind.
.config tiny-int8 write_latency=40
.dram
p:      .int32 1 0x17800000  1 0x17800000  1 0x17800000  1 0x17800000
        .int32 2 0x17800000  2 0x17800000  2 0x17800000  2 0x17800000
y:      .int8 99*12
.preset acc[0] .int32 0*4

        SET.OUT low=-128 high=127
        LOAD.PAR dram_base=p y_size=1 x_size=1
        STORE.REQ dram_base=y y_size=1 x_size=1
        LOAD.PAR dram_base=p+1 y_size=1 x_size=1
        STORE.REQ dram_base=y+1 y_size=1 x_size=1
        LOAD.PAR dram_base=p y_size=1 x_size=1
        STORE.REQ dram_base=y+2 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 1*4 2*4 1*4

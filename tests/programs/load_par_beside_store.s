# A LOAD of par that fills what no STORE uses starts while a STORE is under way; it retires behind it all the same.
.config tiny-int8 write_latency=60 read_latency=10
.dram
p:      .int32 1 0x17800000  1 0x17800000  1 0x17800000  1 0x17800000
y:      .int8 99*32
.preset acc[0] .int32 0*16
.preset par[3] .int32 2 0x17800000  2 0x17800000  2 0x17800000  2 0x17800000

        SET.OUT low=-128 high=127
        STORE.REQ dram_base=y y_size=1 x_size=4 par=3
        LOAD.PAR dram_base=p y_size=1 x_size=1
        STORE.REQ dram_base=y+4 y_size=1 x_size=4
        FINISH

.expect dram[y] .int8 2*16 1*16

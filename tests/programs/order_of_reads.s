# Where several units ask for bursts in one cycle, compute goes first, then store, then load.
.config tiny-int8 read_latency=20
.dram
p:      .int32 1 0x17800000  1 0x17800000  1 0x17800000  1 0x17800000
a:      .int32 1..32
i:      .int8 1..64
.preset par[0] .int32 0*64

        LOAD.INP dram_base=i y_size=12 x_size=1 x_stride=1
        LOAD.PAR dram_base=p y_size=6 x_size=1
        LOAD.ACC dram_base=a y_size=4 x_size=1 x_stride=1
        LOAD.WGT dram_base=i y_size=4 x_size=1
        LOAD.RES dram_base=i y_size=4 x_size=1
        FINISH

.expect inp[0] .int16 1..48
.expect res[0] .int8 1..4 1..4 1..4 1..4

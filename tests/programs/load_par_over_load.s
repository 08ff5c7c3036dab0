# A LOAD of par waits for the LOADs of what it fills, of other elements it does not; all retire in order.
.config tiny-int8
.dram
p:      .int32 1..32
.preset par[0] .int32 0*128

        LOAD.PAR dram_base=p y_size=1 x_size=3
        LOAD.PAR sram_base=2 dram_base=p y_size=1 x_size=2
        LOAD.PAR sram_base=8 dram_base=p y_size=1 x_size=2
        LOAD.PAR sram_base=10
        LOAD.PAR sram_base=6 dram_base=p+2 y_size=1 x_size=1
        FINISH

.expect par[2] .int32 1..16
.expect par[6] .int32 17..24

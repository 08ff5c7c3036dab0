# A SET waits for the LOADs before it, and those behind it for the SET, also where none of them needs the bus.
.config tiny-int8
.preset inp[0] .int16 9*8
.dram 0
    .int8 1..64

        LOAD.INP y_size=4 x_size=4 x_stride=4
        SET.INP zero=1
        SET.INP zero=2
        LOAD.INP sram_base=16
        SET.INP zero=3
        LOAD.INP sram_base=16 y_size=1 x_size=2  >compute
        FINISH                                   <load

.expect inp[0] .int16 1..64 -2..5

# Pads of wgt are zero for any zero point. SET.WGT changes neither inp nor its setting, and SET.INP not wgt.
.config tiny-npu
.dram 0
    .int8 1 2 3 4  5 6 7 8  9 10 11 12  13 14 15 16

        SET.INP zero=-3
        SET.WGT zero=10  >compute
        SET.ACC          <load >load
        LOAD.INP y_size=1 x_size=1
        LOAD.WGT sram_base=2 y_size=1 x_size=1 y_pad_0=1 x_pad_1=1
        SET.WGT zero=10  <compute
        SET.INP zero=1
        LOAD.WGT sram_base=6 y_size=1 x_size=1
        LOAD.INP sram_base=1 y_size=1 x_size=1  >compute
        FINISH                                  <load

.expect inp[0] .int16 4 5 6 7  0 1 2 3
.expect wgt[2] .int16 0*32  -9..6  0*16  -9..6

# A zero point is subtracted from each byte of inp, from int8 and from uint8; what comes of it has 9 bits.
.config tiny-int8
.dram 0
    .int8 -128 -1 0 127
.dram 64
    .int8 -128 -1 0 127

        SET.INP zero=127
        LOAD.INP y_size=1 x_size=1
        SET.INP zero=-128
        LOAD.INP sram_base=1 y_size=1 x_size=1
        SET.INP unsigned=1
        LOAD.INP sram_base=2 y_size=1 x_size=1
        SET.INP unsigned=1 zero=255
        LOAD.INP sram_base=3 y_size=1 x_size=1
        SET.INP zero=-3
        LOAD.INP sram_base=4 dram_base=16 y_size=1 x_size=1
        SET.INP
        LOAD.INP sram_base=5 y_size=1 x_size=1  >compute
        FINISH                                  <load

.expect inp[0] .int16 -255 -128 -127 0  0 127 128 255  128 255 0 127  -127 0 -255 -128  -125 2 3 130  -128 -1 0 127

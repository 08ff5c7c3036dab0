# A zero point is subtracted from each byte of wgt, from int8 and from uint8. The differences have 9 bits.
.config tiny-npu
.dram 0
    .int8 -128 -1 0 127  -128 -1 0 127  -128 -1 0 127  -128 -1 0 127
.dram 64
    .int8 1 2 3 4  5 6 7 8  9 10 11 12  13 14 15 16

        SET.WGT zero=127
        LOAD.WGT y_size=1 x_size=1
        SET.WGT zero=-128
        LOAD.WGT sram_base=1 y_size=1 x_size=1
        SET.WGT unsigned=1
        LOAD.WGT sram_base=2 y_size=1 x_size=1
        SET.WGT unsigned=1 zero=255
        LOAD.WGT sram_base=3 y_size=1 x_size=1
        SET.WGT zero=-3
        LOAD.WGT sram_base=4 dram_base=4 y_size=1 x_size=1
        SET.WGT
        LOAD.WGT sram_base=5 y_size=1 x_size=1  >compute
        FINISH                                  <load

.expect wgt[0] .int16 -255 -128 -127 0  -255 -128 -127 0  -255 -128 -127 0  -255 -128 -127 0
.expect wgt[1] .int16 0 127 128 255  0 127 128 255  0 127 128 255  0 127 128 255
.expect wgt[2] .int16 128 255 0 127  128 255 0 127  128 255 0 127  128 255 0 127
.expect wgt[3] .int16 -127 0 -255 -128  -127 0 -255 -128  -127 0 -255 -128  -127 0 -255 -128
.expect wgt[4] .int16 4..19
.expect wgt[5] .int16 -128 -1 0 127  -128 -1 0 127  -128 -1 0 127  -128 -1 0 127

# Pads of inp are zero whatever the zero point is: they stand for the zero of the tensor.
.config tiny-int8
.dram 0
    .int8 7 8 9 10  11 12 13 14

        SET.INP zero=10
        LOAD.INP sram_base=2 y_size=2 x_size=1 x_stride=1 y_pad_0=1 x_pad_1=1 y_pad_1=1  >compute
        FINISH                                                                           <load

.expect inp[2] .int16 0*8  -3 -2 -1 0  0*4  1 2 3 4  0*12

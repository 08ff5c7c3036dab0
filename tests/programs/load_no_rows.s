# y_size 0 with x_size above 0: the pad rows are still written, with the pads of their elements.
.config tiny
.preset inp[0] .int8 9*40
.preset acc[0] .int32 9*24

        LOAD.INP  x_size=2 y_pad_0=1 y_pad_1=1 x_pad_0=1
        LOAD.INP  sram_base=8 x_size=1
        LOAD.ACC  x_size=1 y_pad_1=2
        FINISH

.expect inp[0] .int8 0*24 9*16
.expect acc[0] .int32 0*16 9*8

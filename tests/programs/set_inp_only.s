# A zero point of inp concerns neither wgt nor what the compute unit loads.
.config tiny-int8
.dram 0
    .int8 -1 -2 -3 -4  -5 -6 -7 -8  -9 -10 -11 -12  -13 -14 -15 -16

        SET.INP zero=5 unsigned=1
        LOAD.WGT y_size=1 x_size=1  >compute
        LOAD.ACC_8BIT y_size=1 x_size=1
        LOAD.ACC sram_base=1 y_size=1 x_size=1
        FINISH                      <load

.expect wgt[0] .int8 -1..-16
.expect acc[0] .int32 -1 -2 -3 -4  -50462977 -117835013 -185207049 -252579085

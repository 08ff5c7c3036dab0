# Taps are a step apart, wherever they lie in the banks; the first one of each micro-op is in another bank.
.config tiny-int8
.preset uop[0] .uop 0,0,0 1,1,0 2,2,0 3,3,0
.preset inp[0] .int16 1*4 2*4 3*4 4*4 5*4 6*4 7*4 8*4 9*4 10*4 11*4 12*4 13*4
.preset wgt[0] .int8 1 10 100 0  1 0 0 0  0 1 10 0  1 -1 0 0

        SET.ACC taps=3 step=1
        MAC depthwise=1 overwrite=1 uop_end=4 dst_factor_out=16 iter_out=2
        SET.ACC taps=2 step=2
        MAC depthwise=1 overwrite=1 uop_end=4 dst_factor_out=4 iter_out=2
        SET.ACC taps=3 step=3
        MAC depthwise=1 overwrite=1 uop_end=4 dst_factor_out=8 iter_out=2
        SET.ACC taps=1 step=4
        MAC depthwise=1 overwrite=1 uop_end=4 dst_factor_out=12 iter_out=2
        SET.ACC taps=1
        MAC depthwise=1 uop_end=4 dst_factor_out=12 iter_out=2
        FINISH

.expect acc[0] .int32 2 2 0 2  4 4 0 4  6 6 0 6  8 8 0 8
.expect acc[4] .int32 31 1 3 -2  42 2 4 -2  53 3 5 -2  64 4 6 -2
.expect acc[8] .int32 741 1 74 -3  852 2 85 -3  963 3 96 -3  1074 4 107 -3
.expect acc[12] .int32 2 2 0 2  4 4 0 4  6 6 0 6  8 8 0 8
.expect acc[16] .int32 321 1 32 -1  432 2 43 -1  543 3 54 -1  654 4 65 -1

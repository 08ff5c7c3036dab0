# Each channel has its own sum, over the taps; columns behind the last tap are not looked at. A MAC overwrites, or adds.
.config tiny-int8
.preset uop[0] .uop 0,0,0 1,1,0 0,3,1
.preset inp[0] .int16 1 2 3 4  10 20 30 40  100 200 -100 -200  5 6 7 8  255 -256 0 1  1*4
.preset wgt[0] .int8 1 1 1 99  1 0 0 99  0 1 0 99  0 0 1 99
.preset wgt[1] .int8 -1*4  2 2 2 2  1 0 0 0  -128 127 -128 -1
.preset acc[0] .int32 7*8

        SET.ACC taps=3 step=1
        MAC depthwise=1 uop_end=2
        SET.ACC
        MAC depthwise=0 overwrite=1 uop_end=0
        SET.ACC taps=3 step=1
        MAC depthwise=1 overwrite=1 uop_end=1
        MAC depthwise=1 uop_begin=2 uop_end=3
        FINISH

.expect acc[0] .int32 -150 -496 37 -1225
.expect acc[1] .int32 122 27 -93 15

# The last tap is beyond inp, in the second micro-op; the first has executed, and without taps both would be in range.
.config tiny-int8
.preset uop[0] .uop 0,124,0 1,125,0
.preset inp[124] .int16 1 2 3 4  10 20 30 40  100 200 -100 -200  1*4
.preset wgt[0] .int8 1 1 1 9  1 0 0 9  0 1 0 9  0 0 1 9

        MAC overwrite=1 uop_end=2
        SET.ACC taps=4 step=1
bad:    MAC depthwise=1 overwrite=1 uop_end=2
        FINISH

.expect fault src-index at bad
.expect acc[0] .int32 120 11 39 -191

# A zero point that no int8 has; the LOAD before it has run.
.config tiny-int8
.dram 0
    .int8 1..4

        LOAD.INP y_size=1 x_size=1
bad:    SET.INP zero=128
        FINISH

.expect fault zero-point at bad
.expect inp[0] .int16 1..4

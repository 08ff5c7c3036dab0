# A depthwise MAC behind no SET.ACC has no taps; what is before it has run.
.config tiny-int8
.preset uop[0] .uop 0,0,0
.preset inp[0] .int16 1*4
.preset wgt[0] .int8 1*16

        MAC overwrite=1 uop_end=1
        LOAD.UOP
bad:    MAC depthwise=1 uop_end=1
        FINISH

.expect fault reserved at bad
.expect acc[0] .int32 4*4

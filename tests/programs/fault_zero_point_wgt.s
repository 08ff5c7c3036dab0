# A zero point of wgt above the values of an int8.
.config tiny-npu
bad:    SET.WGT zero=128
        FINISH
.expect fault zero-point at bad

# A zero point below what an int8 has.
.config tiny-int8
bad:    SET.INP zero=-129
        FINISH
.expect fault zero-point at bad

# A zero point that no uint8 has.
.config tiny-int8
        SET.INP zero=255 unsigned=1
bad:    SET.INP zero=-1 unsigned=1
        FINISH
.expect fault zero-point at bad

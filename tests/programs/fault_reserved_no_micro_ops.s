# A depthwise MAC without taps is at fault in a loop that is empty, too.
.config tiny-int8
        SET.ACC taps=2 step=1
        SET.ACC
bad:    MAC depthwise=1 uop_begin=255 uop_end=257 iter_in=0
        FINISH
.expect fault reserved at bad

# The reserved bit of a MAC counts in a loop that is empty, and before micro-ops beyond their memory.
.config tiny-int8
bad:    MAC depthwise=1 uop_begin=255 uop_end=257 iter_in=0
        FINISH
.expect fault reserved at bad

# Micro-ops beyond their memory count before taps that are missing.
.config tiny-int8
bad:    MAC depthwise=1 uop_begin=255 uop_end=257
        FINISH
.expect fault uop-range at bad

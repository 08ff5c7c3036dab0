# Micro-ops of a MAC beyond the micro-op memory.
.config tiny-int8
bad:    MAC uop_begin=255 uop_end=257
        FINISH
.expect fault uop-range at bad

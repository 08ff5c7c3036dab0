# On machines of the second generation STORE writes out and whole accumulators, and knows no other memory.
.config tiny-int8
bad:    STORE.INP y_size=1 x_size=1
        FINISH
.expect fault memory-id at bad

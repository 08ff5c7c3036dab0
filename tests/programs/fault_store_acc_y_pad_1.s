# A STORE.ACC has no pads; nothing of it is written.
.config tiny-int8
.dram
y:      .int32 9*8
bad:    STORE.ACC dram_base=y y_size=1 x_size=1 y_pad_1=1
        FINISH
.expect fault store-pad at bad
.expect dram[y] .int32 9*8

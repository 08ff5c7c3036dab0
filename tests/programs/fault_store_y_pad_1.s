# A STORE has no pads; nothing of it is written.
.config tiny
.dram
y:      .int8 9*64
bad:    STORE.OUT dram_base=y y_size=1 x_size=1 y_pad_1=1
        FINISH
.expect fault store-pad at bad
.expect dram[y] .int8 9*64

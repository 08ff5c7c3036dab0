# A STORE.ACC whose last row is beyond the window writes nothing, also of its first ones: its elements are longer.
.config tiny-int8 mem_size=8KiB
.code 0
.dram 0x1000
y:      .int32 9*64
.preset acc[0] .int32 1*16

        STORE.OUT dram_base=1024 y_size=2 x_size=1 x_stride=512
bad:    STORE.ACC dram_base=y y_size=2 x_size=1 x_stride=256
        FINISH
.expect fault dram-range at bad
.expect dram[y] .int32 16843009 9*63

# A STORE whose last row is beyond the window writes nothing, also of its first ones.
.config tiny mem_size=8KiB
.code 0
.dram 0x1000
y:      .int8 9*64
.preset acc[0] .int32 1*16

bad:    STORE.OUT dram_base=y y_size=2 x_size=1 x_stride=512
        FINISH
.expect fault dram-range at bad
.expect dram[y] .int8 9*64

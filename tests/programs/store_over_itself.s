# Rows that overlap are written in order: with a stride of zero the last one stays.
.config tiny
.dram
a:      .zero 32
b:      .zero 32
.preset acc[0] .int32 1*8 2*8 3*8 4*8

        STORE.OUT dram_base=a y_size=4 x_size=1 x_stride=0
        STORE.OUT dram_base=b y_size=2 x_size=2 x_stride=1
        FINISH

.expect dram[a] .int8 4*8 0*24
.expect dram[b] .int8 1*8 3*8 4*8 0*8

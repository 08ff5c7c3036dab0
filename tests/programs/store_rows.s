# STORE writes the low 8 bits of consecutive accumulators to rows that are a stride apart.
.config tiny
.dram
before: .int8 9*64
.preset acc[2] .int32 0..7  127 128 255 256 -1 -128 -129 1000  1*8 2*8

        STORE.OUT sram_base=2 dram_base=before+1 y_size=2 x_size=2 x_stride=4
        FINISH

.expect dram[before]
        .int8 9*8  0..7  127 -128 -1 0 -1 -128 127 -24  9*16  1*8 2*8 9*8

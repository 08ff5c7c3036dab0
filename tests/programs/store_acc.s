# STORE.ACC writes accumulators whole to rows that are a stride apart, counted in elements of int32.
.config tiny-int8
.dram
before: .int32 9*32
.preset acc[2] .int32 0 1 -1 2147483647  -2147483648 256 -256 65536  16777216 -16777217 7 8  1*4

        STORE.ACC sram_base=2 dram_base=before+1 y_size=2 x_size=2 x_stride=4
        FINISH

.expect dram[before]
        .int32 9*4  0 1 -1 2147483647 -2147483648 256 -256 65536  9*8  16777216 -16777217 7 8 1*4  9*4

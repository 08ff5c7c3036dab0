# Low bytes and whole accumulators by turns: each STORE's elements have the length of its memory id.
.config tiny-int8
.dram
y:      .int8 9*32
z:      .int32 9*16
.preset acc[0] .int32 300 -300 1 2  513 514 515 516  -1 -2 -3 -4

        STORE.OUT dram_base=y y_size=1 x_size=2
        STORE.ACC dram_base=z y_size=1 x_size=2
        STORE.OUT sram_base=1 dram_base=y+3 y_size=1 x_size=1
        STORE.OUT sram_base=2 dram_base=y+4 y_size=1 x_size=1
        STORE.ACC sram_base=2 dram_base=z+3 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 44 -44 1 2  1 2 3 4  9*4  1 2 3 4  -1 -2 -3 -4  9*12
.expect dram[z] .int32 300 -300 1 2  513 514 515 516  9*4  -1 -2 -3 -4

# The element of par stays the same, or goes with the rows, or with the elements of a row.
.config tiny-int8
.dram
p:      .int32 10 0x17800000 11 0x17800000 12 0x17800000 13 0x17800000
        .int32 20 0x17800000 21 0x17800000 22 0x17800000 23 0x17800000
        .int32 30 0x17800000 31 0x17800000 32 0x17800000 33 0x17800000
        .int32 40 0x17800000 41 0x17800000 42 0x17800000 43 0x17800000
y:      .int8 99*48
.preset acc[4] .int32 0*16

        LOAD.PAR sram_base=12 dram_base=p y_size=1 x_size=2
        LOAD.PAR sram_base=14 dram_base=p+2 y_size=2 x_size=1 x_stride=1
        SET.OUT low=-128 high=127
        STORE.REQ sram_base=4 dram_base=y y_size=2 x_size=2 x_stride=2 par=13
        STORE.REQ sram_base=4 dram_base=y+4 y_size=2 x_size=2 x_stride=2 par=12 par_y=1
        STORE.REQ sram_base=4 dram_base=y+8 y_size=2 x_size=2 x_stride=2 par=14 par_x=1
        FINISH

.expect dram[y] .int8 20 21 22 23  20 21 22 23  20 21 22 23  20 21 22 23
.expect dram[y+16] .int8 10 11 12 13  10 11 12 13  20 21 22 23  20 21 22 23
.expect dram[y+32] .int8 30 31 32 33  40 41 42 43  30 31 32 33  40 41 42 43

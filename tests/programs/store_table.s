# Requantized bytes pass through a table of TAB, an entry for each of the 256 values of a byte.
.config tiny-npu
.dram
t:      .int8 10 11 12 13 14 15 16 17 8*240 -8 -7 -6 -5 -4 -3 -2 -1
        .int8 -1*256
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
y:      .int8 99*24
.preset acc[0] .int32 0 1 -1 7  -8 -2 8 -3  -300 300 200 3  255 128 -128 4  5 6 7 127  1 2 3 4

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.TAB dram_base=t y_size=2 x_size=1 x_stride=1
        SET.OUT low=-128 high=127
        STORE.REQ dram_base=y y_size=1 x_size=2 table=1
        STORE.REQ dram_base=y+2 sram_base=2 y_size=1 x_size=1 table=2
        STORE.REQ dram_base=y+3 sram_base=3 y_size=1 x_size=1
        STORE.OUT dram_base=y+4 sram_base=4 y_size=1 x_size=1
        SET.OUT low=0 high=255
        STORE.REQ dram_base=y+5 sram_base=3 y_size=1 x_size=1 table=1
        FINISH

.expect dram[y] .int8 10 11 -1 17  -8 -2 8 -3  -1*4  127 127 -128 4  5 6 7 127  -1 8 10 14

# Rows of tables, with a stride in DRAM, fill consecutive elements of tab. A later LOAD replaces one of them.
.config tiny-npu
.dram
t:      .int8 1*256  2*256  3*256  4*256  5*256  6*256
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
y:      .int8 99*16
.preset acc[0] .int32 0 127 -128 -1

        LOAD.PAR dram_base=p y_size=1 x_size=1
        LOAD.TAB dram_base=t y_size=2 x_size=2 x_stride=3
        LOAD.TAB dram_base=t+5 sram_base=1 y_size=1 x_size=1
        SET.OUT low=-128 high=127
        STORE.REQ dram_base=y y_size=1 x_size=1 table=1
        STORE.REQ dram_base=y+1 y_size=1 x_size=1 table=2
        STORE.REQ dram_base=y+2 y_size=1 x_size=1 table=3
        STORE.REQ dram_base=y+3 y_size=1 x_size=1 table=4
        FINISH

.expect dram[y] .int8 1*4 6*4 4*4 5*4

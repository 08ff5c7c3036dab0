# LOADs of tab and STOREs that use it follow one another: a STORE has the table that was loaded before it, and not
# the one after it. LOADs of another table do not change it.
.config tiny-npu write_latency=40
.dram
t:      .int8 1*256  2*256
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
y:      .int8 99*20
.preset acc[0] .int32 0*4

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT low=-128 high=127
        LOAD.TAB dram_base=t sram_base=2 y_size=1 x_size=1
        STORE.REQ dram_base=y y_size=1 x_size=1 table=3
        LOAD.TAB dram_base=t+1 sram_base=2 y_size=1 x_size=1
        STORE.REQ dram_base=y+1 y_size=1 x_size=1 table=3
        LOAD.TAB dram_base=t sram_base=3 y_size=1 x_size=1
        STORE.REQ dram_base=y+2 y_size=1 x_size=1 table=3
        LOAD.TAB dram_base=t sram_base=2 y_size=1 x_size=1
        STORE.REQ dram_base=y+3 y_size=1 x_size=1 table=3
        STORE.REQ dram_base=y+4 y_size=1 x_size=1 table=4
        FINISH

.expect dram[y] .int8 1*4 2*4 2*4 1*4 1*4

# Products in a pipeline: STORE.MULs wait for sums, and give their accumulators back.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
a:      .int32 1 2 3 4  5 6 7 8
r:      .int8 1 2 3 4  -1 -1 2 2
y:      .int8 99*8

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT low=-128 high=127
        SET.SUM low=-128 high=127 left_multiplier=1
        LOAD.RES dram_base=r y_size=2 x_size=1 x_stride=1
        LOAD.ACC dram_base=a y_size=1 x_size=1 >next
        STORE.MUL dram_base=y y_size=1 x_size=1 <prev >prev
        LOAD.ACC dram_base=a+1 y_size=1 x_size=1 <next >next
        STORE.MUL dram_base=y+1 y_size=1 x_size=1 <prev
        FINISH

.expect dram[y] .int8 1 4 9 16  -5 -6 14 16

# With hold, a STORE uses one residual for all of its elements, in every row. The next STORE takes the next one.
.config tiny-npu
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
p2:     .int32 1 0x17800000  1 0x17800000  1 0x17800000  1 0x17800000
r:      .int8 1 2 3 -1  -2 0 1 5  10 20 30 40
y:      .int8 99*60
.preset acc[0] .int32 1 2 3 4  5 6 7 8  9 10 11 12  -1 -2 -3 -4  -5 -6 -7 -8  -9 -10 -11 -12

        LOAD.PAR dram_base=p y_size=2 x_size=1 x_stride=1
        LOAD.RES dram_base=r y_size=1 x_size=3
        SET.OUT low=-128 high=127
        SET.SUM low=-128 high=127 left_multiplier=1 right_multiplier=1
        STORE.MUL dram_base=y y_size=2 x_size=3 x_stride=4 hold=1 par_y=1
        STORE.MUL sram_base=4 dram_base=y+8 y_size=1 x_size=2 hold=1 par=1
        STORE.ADD sram_base=2 dram_base=y+10 y_size=2 x_size=2 x_stride=2 hold=1 par_x=1
        FINISH

.expect dram[y] .int8 1 4 9 -4  5 12 21 -8  9 20 33 -12  99*4
.expect dram[y+16] .int8 0 -2 -6 3  -4 -10 -18 7  -8 -18 -30 11  99*4
.expect dram[y+32] .int8 8 0 -6 -35  16 0 -10 -55
.expect dram[y+40] .int8 19 30 41 52  10 19 28 37  5 14 23 32  2 11 20 29

# Results may be uint8: their bounds and zero points have nine bits. Before the first SET, all are zero.
.config tiny-int8
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
y:      .int8 99*12
.preset acc[0] .int32 -200 -28 0 200  1 -1 300 -300  127 128 -128 -129

        LOAD.PAR dram_base=p y_size=1 x_size=1
        STORE.REQ dram_base=y y_size=1 x_size=1
        SET.OUT zero=128 low=0 high=255
        STORE.REQ sram_base=1 dram_base=y+1 y_size=1 x_size=2
        FINISH

.expect dram[y] .int8 0*4  -127 127 -1 0  -1 -1 0 0

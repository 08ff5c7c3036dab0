# A STORE with hold makes room for one residual, however many elements it stores. res has 16 elements.
.config tiny-npu read_latency=40
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 2*4 3*60 5*8
y:      .int8 99*176
.preset acc[0] .int32 1*48

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT low=-128 high=127
        SET.SUM low=-128 high=127 left_multiplier=1 right_multiplier=1
        LOAD.RES dram_base=r y_size=1 x_size=16
        STORE.MUL dram_base=y y_size=1 x_size=12 hold=1
        LOAD.RES dram_base=r+16 y_size=1 x_size=1
        STORE.ADD dram_base=y+12 y_size=1 x_size=12 hold=1
        LOAD.RES dram_base=r+17 y_size=1 x_size=1
        STORE.ADD dram_base=y+24 y_size=1 x_size=12
        STORE.MUL dram_base=y+36 y_size=1 x_size=2
        STORE.MUL dram_base=y+38 y_size=1 x_size=1 hold=1
        STORE.ADD dram_base=y+39 y_size=1 x_size=1
        FINISH

.expect dram[y] .int8 2*48 4*48 4*48 3*8 5*4 6*4

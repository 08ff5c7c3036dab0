# Residuals are taken first in, first out, whatever the LOADs and STOREs are; res has 16 elements and goes round.
.config tiny-int8
.dram
p:      .int32 0 0x17800000  0 0x17800000  0 0x17800000  0 0x17800000
r:      .int8 1*4 2*4 3*4 4*4 5*4 6*4 7*4 8*4 9*4 10*4 11*4 12*4
        .int8 13*4 14*4 15*4 16*4 17*4 18*4 19*4 20*4 21*4 22*4 23*4 24*4
y:      .int8 99*96
.preset acc[0] .int32 0*64

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.SUM low=-128 high=127 right_multiplier=1
        LOAD.RES dram_base=r y_size=3 x_size=4 x_stride=4
        STORE.ADD sram_base=1 dram_base=y y_size=1 x_size=8
        LOAD.RES dram_base=r+12 y_size=1 x_size=12
        STORE.ADD dram_base=y+8 y_size=2 x_size=8 x_stride=8 par_y=0
        FINISH

.expect dram[y] .int8 1*4 2*4 3*4 4*4 5*4 6*4 7*4 8*4 9*4 10*4 11*4 12*4
.expect dram[y+48] .int8 13*4 14*4 15*4 16*4 17*4 18*4 19*4 20*4 21*4 22*4 23*4 24*4

# Sums become float32 before they are multiplied, and so do products: half to even, at 24 bits.
# The scales are 5 / 2^25, 1 / 6 rounded up, 1 / 2^31 and 10.
.config tiny-int8
.dram
p:      .int32 0 0x2ea00000  0 0x1aaaaaab  0 0x36800000  0 0x14a00000
y:      .int8 99*8
.preset acc[0] .int32 16777217 3 0x7fffffff 7  16777219 15 -0x80000000 13

        SET.OUT low=-128 high=127
        LOAD.PAR dram_base=p y_size=1 x_size=1
        STORE.REQ dram_base=y y_size=1 x_size=2
        FINISH

.expect dram[y] .int8 2 0 1 70  3 2 -1 127

# Rows may begin in the middle of a beat and cross a 4 KiB boundary; what lies between them stays.
.config tiny-int8 bus_bits=128
.dram 0x1fec
y:      .int8 99*40
.dram 0x3000
p:      .int32 0 0x17800000  100 0x17800000  0 0x18800000  -1 0x17800000
.preset acc[0] .int32 1*4 2*4 3*4 4*4 5*4 6*4 7*4 8*4

        LOAD.PAR dram_base=p y_size=1 x_size=1
        SET.OUT low=-128 high=127
        STORE.REQ dram_base=y+1 y_size=2 x_size=3 x_stride=4 sram_base=1
        FINISH

.expect dram[y] .int8 99*4  2 102 1 1  3 103 2 2  4 104 2 3  99*4  5 105 2 4  6 106 3 5  7 107 4 6  99*8

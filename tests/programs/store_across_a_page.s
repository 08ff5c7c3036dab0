# A row may cross a 4 KiB boundary, and rows may begin in the middle of a beat.
.config tiny bus_bits=128
.dram 0x1ff0
a:      .int8 9*64
.preset acc[0] .int32 1*8 2*8 3*8 4*8 5*8

        STORE.OUT dram_base=a+1 y_size=1 x_size=5
        FINISH

.expect dram[a] .int8 9*8 1*8 2*8 3*8 4*8 5*8 9*16

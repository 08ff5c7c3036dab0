# Several accumulators in one beat: rows may begin in the middle of one and cross a 4 KiB boundary.
.config tiny-int8 bus_bits=512
.dram 0x1fd0
a:      .int32 9*40
.preset acc[0] .int32 1*4 2*4 3*4 4*4 5*4 6*4 7*4

        STORE.ACC dram_base=a+1 y_size=1 x_size=7
        FINISH

.expect dram[a] .int32 9*4 1*4 2*4 3*4 4*4 5*4 6*4 7*4 9*8

# A stride of zero repeats a row; one that is less than the row lets rows overlap.
.config tiny
.dram
data:   .int8 0..31

        LOAD.INP  dram_base=data y_size=3 x_size=2 x_stride=0
        LOAD.INP  sram_base=8 dram_base=data+1 y_size=3 x_size=2 x_stride=1
        FINISH

.expect inp[0] .int8 0..7 0..7 0..7
.expect inp[8] .int8 4..11 8..15 12..19

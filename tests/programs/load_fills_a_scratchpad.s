# One LOAD may fill a whole scratchpad, in bursts that end at 4 KiB boundaries.
.config tiny
.dram 0x1f80
data:   .int8 7*4096

        LOAD.WGT  dram_base=data y_size=16 x_size=8 x_stride=8
        FINISH

.expect wgt[0] .int8 7*4096

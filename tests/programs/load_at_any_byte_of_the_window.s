# The window's first and last bytes; addresses count from mem_base.
.config tiny mem_base=0x10000 mem_size=8KiB
.code 0x1000
.dram 0
first:  .int8 1 2 3 4
.dram 0x1ffc
last:   .int8 5 6 7 8

        LOAD.INP  dram_base=0 y_size=1 x_size=1
        LOAD.INP  sram_base=1 dram_base=2047 y_size=1 x_size=1
        FINISH

.expect inp[0] .int8 1..8

# Micro-ops are 4 bytes in DRAM; they may start in any lane of the bus, and pads are micro-ops 0,0,0.
.config tiny
.dram
uops:   .uop 1,2,3 4,5,6 7,8,9 10,11,12 13,14,15

.preset uop[20] .uop 1,1,1 1,1,1 1,1,1 1,1,1

        LOAD.UOP  sram_base=3 dram_base=uops+1 y_size=1 x_size=3
        LOAD.UOP  sram_base=20 dram_base=uops+4 y_size=1 x_size=1 x_pad_0=1 x_pad_1=2
        LOAD.UOP  sram_base=255 dram_base=uops y_size=1 x_size=1
        FINISH

.expect uop[3] .uop 4,5,6 7,8,9 10,11,12
.expect uop[20] .uop 0,0,0 13,14,15 0,0,0 0,0,0
.expect uop[255] .uop 1,2,3

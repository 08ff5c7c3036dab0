# What tokens put before the fault has happened, what they put behind it has not.
.config tiny
.dram
y:      .int8 9*16
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 1*8

        STORE.OUT dram_base=y y_size=1 x_size=1     >compute
bad:    LOAD.MEM6 y_size=1 x_size=1                 <store >store
        STORE.OUT dram_base=y+1 y_size=1 x_size=1   <compute
        FINISH

.expect fault memory-id at bad
.expect dram[y] .int8 1*8 9*8

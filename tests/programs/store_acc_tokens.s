# A STORE.ACC waits for tokens and sends them, and follows products as STORE.OUT does.
.config tiny-int8
.dram
y:      .int32 9*8
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 5*4

        ALU.ADD uop_end=1 use_imm=1 imm=30000               >store
        STORE.ACC dram_base=y y_size=1 x_size=1             <compute >compute
        ALU.ADD uop_end=1 use_imm=1 imm=-1                  <store >store
        STORE.ACC dram_base=y+1 y_size=1 x_size=1           <compute
        FINISH

.expect dram[y] .int32 30005*4 30004*4

# Two sets of accumulators, one stored while the other is computed.
.config tiny
.dram
y:      .zero 16
.preset uop[0] .uop 0,0,0 1,0,0
.preset acc[0] .int32 0*16

        ALU.ADD   uop_end=1 use_imm=1 imm=1               >store
        STORE.OUT dram_base=y y_size=1 x_size=1           <compute >compute
        ALU.ADD   uop_begin=1 uop_end=2 use_imm=1 imm=2   >store
        STORE.OUT sram_base=1 dram_base=y+1 y_size=1 x_size=1   <compute
        ALU.ADD   uop_end=1 use_imm=1 imm=10              <store
        FINISH

.expect dram[y] .int8 1*8 2*8
.expect acc[0] .int32 11*8

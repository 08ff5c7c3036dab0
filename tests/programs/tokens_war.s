# WAR tokens against the chain: a buffer is used again when its reader is done.
.config tiny
.dram
x:      .int8 1 0 0 0  2 0 0 0  3 0 0 0
        .align 8
y:      .zero 24
.preset uop[0] .uop 0,0,0
.preset wgt[0] .int8 1*32
.preset acc[0] .int32 0*8

        LOAD.INP  dram_base=x y_size=1 x_size=1               >compute
        GEMM      uop_end=1                                   <load >load >store
        STORE.OUT dram_base=y y_size=1 x_size=1               <compute >compute
        LOAD.INP  dram_base=x+1 y_size=1 x_size=1             <compute >compute
        GEMM      uop_end=1                                   <load <store >load >store
        STORE.OUT dram_base=y+1 y_size=1 x_size=1             <compute >compute
        LOAD.INP  dram_base=x+2 y_size=1 x_size=1             <compute >compute
        GEMM      uop_end=1                                   <load <store >store
        STORE.OUT dram_base=y+2 y_size=1 x_size=1             <compute
        FINISH

.expect dram[y] .int8 1*8 3*8 6*8
.expect tokens

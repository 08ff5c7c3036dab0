# RAW tokens along the chain: load to compute, compute to store.
.config tiny
.dram
x:      .int8 1 2 3 4
        .align 8
y:      .zero 8
.preset uop[0] .uop 0,0,0
.preset wgt[0] .int8 1*32
.preset acc[0] .int32 0*8

        LOAD.INP  dram_base=x y_size=1 x_size=1   >compute
        GEMM      uop_end=1                       <load >store
        STORE.OUT dram_base=y y_size=1 x_size=1   <compute
        FINISH

.expect dram[y] .int8 10*8
.expect tokens

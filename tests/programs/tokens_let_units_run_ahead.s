# The store unit waits for its token while load and compute work on; in program order it comes first.
.config tiny
.dram
x:      .int8 4 3 2 1
        .align 8
y:      .zero 8
.preset uop[0] .uop 0,0,0
.preset wgt[0] .int8 1*32
.preset acc[0] .int32 0*8

        STORE.OUT dram_base=y y_size=1 x_size=1   <compute
        GEMM      uop_end=1                       <load >store
        LOAD.INP  dram_base=x y_size=1 x_size=1   >compute
        FINISH

.expect dram[y] .int8 10*8

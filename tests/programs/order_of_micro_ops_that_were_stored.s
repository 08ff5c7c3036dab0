# A program may compute its own micro-ops. Their effect is known only at run time.
.config tiny
.dram
u:      .uop 9,9,9 9,9,9
.preset uop[0] .uop 0,0,0
.preset acc[0] .int32 2 0 0 0 3 0 0 0
.preset acc[2] .int32 7*16

        STORE.OUT dram_base=u y_size=1 x_size=1    >compute
        LOAD.UOP  sram_base=4 dram_base=u y_size=1 x_size=2    <store
        GEMM      reset=1 uop_begin=4 uop_end=6
        FINISH

.expect uop[4] .uop 2,0,0 3,0,0
.expect acc[2] .int32 0*16

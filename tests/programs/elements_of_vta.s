# The stock geometry from DRAM to DRAM: 1x16x16, ReLU and a shift on the way.
.config vta
.dram
uops:   .uop 0,0,0 1,0,0
        .align 16
x:      .int8 1*16
        .align 256
w:      .int8 1*16 2*16 3*16 4*16 5*16 6*16 7*16 8*16 -1*16 -2*16 -3*16 -4*16 -5*16 -6*16 -7*16 -8*16
y:      .int8 9*48

        LOAD.UOP  dram_base=uops y_size=1 x_size=2
        GEMM      reset=1 uop_end=2
        LOAD.INP  dram_base=x y_size=1 x_size=1
        LOAD.WGT  dram_base=w y_size=1 x_size=1   >compute
        GEMM      uop_end=2   <load
        ALU.MAX   uop_end=1 use_imm=1
        ALU.SHR   uop_begin=1 uop_end=2 use_imm=1 imm=2   >store
        STORE.OUT dram_base=y y_size=1 x_size=2   <compute
        FINISH

.expect dram[y]
        .int8 16 32 48 64 80 96 112 -128 0*8
        .int8 4 8 12 16 20 24 28 32 -4 -8 -12 -16 -20 -24 -28 -32  9*16

# acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k], from DRAM to DRAM.
.config tiny
.dram
uops:   .uop 5,7,2
x:      .int8 1 -2 3 -4
        .align 32
w:      .int8 1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1  1 1 1 1  -1 -1 -1 -1  127 0 0 127  -128*4
s:      .int32 10 20 30 40 50 60 70 80
y:      .zero 8

        LOAD.UOP  dram_base=uops y_size=1 x_size=1
        LOAD.ACC  sram_base=5 dram_base=s y_size=1 x_size=1
        LOAD.INP  sram_base=7 dram_base=x y_size=1 x_size=1
        LOAD.WGT  sram_base=2 dram_base=w y_size=1 x_size=1   >compute
        GEMM      uop_end=1   <load >store
        STORE.OUT sram_base=5 dram_base=y y_size=1 x_size=1   <compute
        FINISH

.expect acc[5] .int32 11 18 33 36 48 62 -311 336
.expect dram[y] .int8 11 18 33 36 48 62 -55 80

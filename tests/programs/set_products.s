# Products of values of inp with 9 bits, the largest that there are, by GEMM and MAC.
.config tiny-int8
.preset uop[0] .uop 0,0,0
.preset wgt[0] .int8 -128*16
.preset acc[0] .int32 0*4
.dram 0
    .int8 -1*4
.dram 4
    .int8 -128*4

        SET.INP unsigned=1
        LOAD.INP y_size=1 x_size=1                           >compute
        GEMM uop_end=1                                       <load >load
        SET.INP zero=127                                     <compute
        LOAD.INP dram_base=1 sram_base=1 y_size=1 x_size=1   >compute
        MAC uop_end=1 iter_in=2 dst_factor_in=1 src_factor_in=1 overwrite=1  <load
        GEMM uop_end=1
        FINISH

.expect inp[0] .int16 255*4 -255*4
.expect acc[0] .int32 -261120*4  130560*4

# Two loops around the micro-ops; every factor counts, for dst, src and wgt alike.
.config tiny
.preset uop[3] .uop 10,0,0 11,1,1
.preset inp[0] .int8 1 0 0 0  2 0 0 0  3 0 0 0  4 0 0 0  5 0 0 0  6 0 0 0  7 0 0 0  8 0 0 0
.preset wgt[0] .int8 1*32 10*32 100*32
.preset acc[10] .int32 0*64

        GEMM uop_begin=3 uop_end=5 iter_out=2 iter_in=2 dst_factor_out=4 dst_factor_in=2 src_factor_out=4 src_factor_in=2 wgt_factor_out=1
        FINISH

# i=0 j=0: 1*1, 2*10; j=1: 3*1, 4*10; i=1 j=0: 5*10, 6*100; j=1: 7*10, 8*100
.expect acc[10] .int32 1*8 20*8 3*8 40*8 50*8 600*8 70*8 800*8

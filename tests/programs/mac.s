# Products by a MAC, added to what the accumulators hold; every factor counts, for dst, src and wgt alike.
.config tiny-int8
.preset uop[3] .uop 10,0,0 11,1,1
.preset inp[0] .int16 1 0 0 0  2 0 0 0  3 0 0 0  4 0 0 0  5 0 0 0  6 0 0 0  7 0 0 0  8 0 0 0
.preset wgt[0] .int8 1*16 10*16 100*16 -1*16
.preset acc[10] .int32 0*16 1000*16

        MAC uop_begin=3 uop_end=5 iter_out=2 iter_in=2 dst_factor_out=4 dst_factor_in=2 src_factor_out=4 src_factor_in=2 wgt_factor_out=1 wgt_factor_in=1
        FINISH

# i=0 j=0: 1*1, 2*10; j=1: 3*10, 4*100; i=1 j=0: 5*10, 6*100; j=1: 7*100, 8*-1
.expect acc[10] .int32 1*4 20*4 30*4 400*4 1050*4 1600*4 1700*4 992*4

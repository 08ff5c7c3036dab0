# Two loops and the factors of dst and src, of which the latter count in acc.
.config tiny
.preset uop[0] .uop 0,20,0 1,21,0
.preset acc[0] .int32 1*8 2*8 3*8 4*8 5*8 6*8 7*8 8*8
.preset acc[20] .int32 10*8 20*8 30*8 40*8 50*8

        ALU.ADD uop_end=2 iter_out=2 iter_in=2 dst_factor_out=4 dst_factor_in=2 src_factor_out=2 src_factor_in=1
        FINISH

# i=0: acc 0 += 20, 1 += 21, 2 += 21, 3 += 22; i=1: 4 += 22, 5 += 23, 6 += 23, 7 += 24
.expect acc[0] .int32 11*8 22*8 23*8 34*8 35*8 46*8 47*8 58*8

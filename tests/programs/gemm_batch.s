# Several rows in an element: each is multiplied by all rows of the weight element.
.config gemm8x8
.preset uop[0] .uop 0,0,0
.preset inp[0]
        .int8 1 0*7  0 1 0*6  0*2 1 0*5  0*3 1 0*4  0*4 1 0*3  0*5 1 0*2  0*6 1 0  0*7 2
.preset wgt[0] .int8 0..63
.preset acc[0] .int32 1*64

        GEMM uop_end=1
        FINISH

# the unit matrix, but for a 2, selects columns of wgt: acc[b][o] = 1 + wgt[o][b]
.expect acc[0]
        .int32 1 9 17 25 33 41 49 57
        .int32 2 10 18 26 34 42 50 58
        .int32 3 11 19 27 35 43 51 59
        .int32 4 12 20 28 36 44 52 60
        .int32 5 13 21 29 37 45 53 61
        .int32 6 14 22 30 38 46 54 62
        .int32 7 15 23 31 39 47 55 63
        .int32 15 31 47 63 79 95 111 127

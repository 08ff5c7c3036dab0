# SHR by amounts that stand in accumulators, up to the ends of int32.
.config tiny
.preset uop[0] .uop 0,1,0 2,3,0
.preset acc[0] .int32 -1000*8
.preset acc[1] .int32 0 3 30 31 32 1000 2147483647 10
.preset acc[2] .int32 3*8
.preset acc[3] .int32 -1 -3 -30 -31 -32 -1000 -2147483648 -2147483647

        ALU.SHR uop_end=2
        FINISH

.expect acc[0] .int32 -1000 -125 -1 -1 -1 -1 -1 -1
.expect acc[2] .int32 6 24 -1073741824 -2147483648 0 0 0 0

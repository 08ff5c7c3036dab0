# The same the other way: a micro-op reads what a later one overwrites; nothing is propagated.
.config tiny
.preset uop[0] .uop 0,1,0 1,2,0 2,3,0
.preset acc[0] .int32 0*8 10*8 20*8 30*8

        ALU.MAX uop_end=3
        FINISH

.expect acc[0] .int32 10*8 20*8 30*8 30*8

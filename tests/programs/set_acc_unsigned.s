# Bytes that ACC_8BIT widens are int8, or uint8 after a SET, until the next; ACC is as ever.
.config tiny-int8
.dram 0
    .int8 -1 -128 0 127

        LOAD.ACC_8BIT y_size=1 x_size=1
        SET.ACC unsigned=1
        LOAD.ACC_8BIT sram_base=1 y_size=1 x_size=1 x_pad_1=1
        LOAD.ACC sram_base=3 y_size=1 x_size=1
        SET.ACC
        LOAD.ACC_8BIT sram_base=4 y_size=1 x_size=1
        FINISH

.expect acc[0] .int32 -1 -128 0 127  255 128 0 127  0*4  2130739455 0 0 0  -1 -128 0 127

# x_size 0: tokens only, whatever else stands there (other compilers write memory id 0); y_size 0: no rows.
.config tiny mem_size=64KiB
.dram
a:      .int8 9*16

        STORE.UOP sram_base=65535 dram_base=0xffffffff y_size=7 y_pad_0=1 x_pad_1=15   >compute
        STORE.MEM7
        STORE.OUT dram_base=a x_size=1
        FINISH <store

.expect dram[a] .int8 9*16

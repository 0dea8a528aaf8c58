/* catalog/data/*.tsv as bytes of the program; catalog/builtin.cc reads them. */
    .section .rodata
    .macro embed name
    .global sluice_data_\name
    .global sluice_data_\name\()_end
sluice_data_\name:
    .incbin "catalog/data/\name\().tsv"
sluice_data_\name\()_end:
    .byte 0
    .endm
    embed type
    embed proc
    embed operator
    embed cast
    embed amop_order
    embed keyword
    .section .note.GNU-stack,"",@progbits

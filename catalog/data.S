/* The files of catalog/data as bytes of the program; builtin.cc and system_catalog.cc read them. */
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
    embed pg_aggregate
    embed pg_am
    embed pg_amop
    embed pg_amproc
    embed pg_attribute
    embed pg_cast
    embed pg_class
    embed pg_collation
    embed pg_conversion
    embed pg_language
    embed pg_namespace
    embed pg_opclass
    embed pg_operator
    embed pg_opfamily
    embed pg_proc
    embed pg_range
    embed pg_tablespace
    embed pg_ts_config
    embed pg_ts_config_map
    embed pg_ts_dict
    embed pg_ts_parser
    embed pg_ts_template
    embed pg_type
    .section .note.GNU-stack,"",@progbits

#!/usr/bin/env bash
# Writes catalog/data/*.tsv from a Postgres 15: run by a developer who changes what is read, never by
# the build. It makes a temporary cluster, asks it, and removes it. Run as a user that initdb accepts.
set -euo pipefail
cd "$(dirname "$0")"
bin=${PG_BIN:-/usr/lib/postgresql/15/bin}
dir=$(mktemp -d)
trap '"$bin/pg_ctl" -D "$dir/db" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
"$bin/initdb" -D "$dir/db" -U postgres --no-sync >/dev/null
"$bin/pg_ctl" -D "$dir/db" -w -l "$dir/log" -o "-k $dir -c listen_addresses= -F" start >/dev/null

out=${1:-data}
mkdir -p "$out"
write() {
  "$bin/psql" -h "$dir" -U postgres -d postgres -qAtX -c "COPY ($2) TO STDOUT" >"$out/$1.tsv"
}

# Oids below 10000 are fixed by Postgres's own .dat files; those from there on depend on initdb.
write type "SELECT oid::int8, typname, typlen, typtype, typcategory, typispreferred,
    CASE WHEN typsubscript = 'array_subscript_handler'::regproc THEN typelem::int8 ELSE 0 END,
    typarray::int8, typbasetype::int8, typcollation::int8
  FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND oid < 10000 ORDER BY oid"
write proc "SELECT p.oid::int8, proname, prokind, prorettype::int8, proretset, proisstrict, provolatile,
    provariadic::int8, pronargdefaults, coalesce(aggkind, '-'), coalesce(aggnumdirectargs, 0), proargtypes
  FROM pg_proc p LEFT JOIN pg_aggregate a ON aggfnoid = p.oid
  WHERE pronamespace = 'pg_catalog'::regnamespace AND p.oid < 10000 ORDER BY p.oid"
write operator "SELECT oid::int8, oprname, oprleft::int8, oprright::int8, oprresult::int8, oprcode::oid::int8,
    oprcom::int8, oprnegate::int8, oprcanmerge, oprcanhash
  FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oid < 10000 ORDER BY oid"
write cast "SELECT castsource::int8, casttarget::int8, castfunc::int8, castcontext, castmethod
  FROM pg_cast WHERE castsource < 10000 AND casttarget < 10000 ORDER BY 1, 2"
# The <, = and > of every type's default btree operator class.
write amop_order "SELECT opcintype::int8, l.amopopr::int8, e.amopopr::int8, g.amopopr::int8
  FROM pg_opclass c
  JOIN pg_amop l ON l.amopfamily = opcfamily AND (l.amoplefttype, l.amoprighttype) = (opcintype, opcintype)
  JOIN pg_amop e ON e.amopfamily = opcfamily AND (e.amoplefttype, e.amoprighttype) = (opcintype, opcintype)
  JOIN pg_amop g ON g.amopfamily = opcfamily AND (g.amoplefttype, g.amoprighttype) = (opcintype, opcintype)
  WHERE opcmethod = 403 AND opcdefault
    AND l.amopstrategy = 1 AND e.amopstrategy = 3 AND g.amopstrategy = 5 ORDER BY 1"
# Words that quote_ident() quotes.
write keyword "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U' ORDER BY 1"

# The rows that initdb puts into the system catalogs, whole, with the columns as they are: what clients
# read from pg_catalog. One set of oids that is the same on every Postgres 15 of one build; what depends on the host (collations
# of its locales, sizes, files) and what Sluice does not have (row types, toast tables, indexes of
# catalogs) is left out or zero.
system_class="oid < 16384 AND relkind IN ('r', 'v') AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
write pg_class "SELECT oid, relname, relnamespace, 0, 0, relowner, relam, 0, 0, 0, 0, 0, 0, false, relisshared,
    relpersistence, relkind, relnatts, 0, relkind = 'v', false, false, false, false, true, 'n', false, 0, 0, 0,
    NULL, NULL, NULL FROM pg_class WHERE $system_class ORDER BY oid"
# The domains of information_schema are shown as the types they are made of.
write pg_attribute "SELECT attrelid, attname, coalesce(nullif(typbasetype, 0), atttypid), attstattarget, attlen, attnum,
    attndims, -1, CASE typbasetype WHEN 0 THEN atttypmod ELSE typtypmod END, attbyval, attalign, attstorage, attcompression,
    attnotnull, false, false, '', '', false, true, 0, attcollation, NULL, NULL, NULL, NULL
  FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
  WHERE attnum > 0 AND attrelid IN (SELECT oid FROM pg_class WHERE $system_class) ORDER BY attrelid, attnum"
write pg_type "SELECT oid, typname, typnamespace, typowner, typlen, typbyval, typtype, typcategory, typispreferred,
    typisdefined, typdelim, 0, typsubscript::oid, typelem, typarray, typinput::oid, typoutput::oid, typreceive::oid,
    typsend::oid, typmodin::oid, typmodout::oid, typanalyze::oid, typalign, typstorage, typnotnull, typbasetype,
    typtypmod, typndims, typcollation, NULL, NULL, NULL
  FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND oid < 10000 AND typtype <> 'c' ORDER BY oid"
write pg_proc "SELECT oid, proname, pronamespace, proowner, prolang, procost, prorows, provariadic, prosupport::oid,
    prokind, prosecdef, proleakproof, proisstrict, proretset, provolatile, proparallel, pronargs, pronargdefaults,
    prorettype, proargtypes, proallargtypes, proargmodes, proargnames, pg_get_expr(proargdefaults, 0), NULL,
    CASE WHEN prolang = 12 THEN prosrc ELSE '' END, NULL, NULL, NULL, NULL
  FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND oid < 10000 ORDER BY oid"
write pg_namespace "SELECT oid, nspname, 10, NULL FROM pg_namespace WHERE nspname <> 'pg_toast' ORDER BY oid"
write pg_aggregate "SELECT aggfnoid::oid, aggkind, aggnumdirectargs, aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid,
    aggserialfn::oid, aggdeserialfn::oid, aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggfinalextra,
    aggmfinalextra, aggfinalmodify, aggmfinalmodify, aggsortop, aggtranstype, aggtransspace, aggmtranstype,
    aggmtransspace, agginitval, aggminitval FROM pg_aggregate ORDER BY 1"
write pg_operator "SELECT oid, oprname, oprnamespace, oprowner, oprkind, oprcanmerge, oprcanhash, oprleft, oprright,
    oprresult, oprcom, oprnegate, oprcode::oid, oprrest::oid, oprjoin::oid FROM pg_operator ORDER BY oid"
write pg_opclass "SELECT * FROM pg_opclass ORDER BY oid"
write pg_opfamily "SELECT * FROM pg_opfamily ORDER BY oid"
write pg_amop "SELECT * FROM pg_amop ORDER BY oid"
write pg_amproc "SELECT oid, amprocfamily, amproclefttype, amprocrighttype, amprocnum, amproc::oid FROM pg_amproc ORDER BY oid"
write pg_am "SELECT oid, amname, amhandler::oid, amtype FROM pg_am ORDER BY oid"
write pg_cast "SELECT * FROM pg_cast WHERE castsource < 10000 AND casttarget < 10000 ORDER BY oid"
write pg_range "SELECT rngtypid, rngsubtype, rngmultitypid, rngcollation, rngsubopc, rngcanonical::oid, rngsubdiff::oid
  FROM pg_range ORDER BY 1"
write pg_collation "SELECT * FROM pg_collation WHERE oid < 10000 ORDER BY oid"
write pg_language "SELECT oid, lanname, lanowner, lanispl, lanpltrusted, lanplcallfoid, laninline, lanvalidator, NULL
  FROM pg_language WHERE oid < 10000 ORDER BY oid"
write pg_conversion "SELECT oid, conname, connamespace, conowner, conforencoding, contoencoding, conproc::oid, condefault
  FROM pg_conversion ORDER BY oid"
write pg_tablespace "SELECT oid, spcname, spcowner, NULL, NULL FROM pg_tablespace ORDER BY oid"
write pg_ts_config "SELECT * FROM pg_ts_config ORDER BY oid"
write pg_ts_config_map "SELECT * FROM pg_ts_config_map ORDER BY 1, 2, 3"
write pg_ts_dict "SELECT * FROM pg_ts_dict ORDER BY oid"
write pg_ts_parser "SELECT oid, prsname, prsnamespace, prsstart::oid, prstoken::oid, prsend::oid, prsheadline::oid,
    prslextype::oid FROM pg_ts_parser ORDER BY oid"
write pg_ts_template "SELECT oid, tmplname, tmplnamespace, tmplinit::oid, tmpllexize::oid FROM pg_ts_template ORDER BY oid"

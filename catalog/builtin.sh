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

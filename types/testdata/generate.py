#!/usr/bin/env python3
"""Writes kernels.tsv: calls every function that has a kernel on a scratch Postgres, with combinations of values that
are likely to differ (limits, NaN, infinities, time zone changes, blanks, wide characters).

usage: types_test --gtest_also_run_disabled_tests --gtest_filter=*ListKernels |
         PGHOST=… PGPORT=… PGUSER=… ./generate.py > kernels.tsv
"""
import itertools
import os
import random
import subprocess
import sys

random.seed(15)
CASES_PER_FUNCTION = int(os.environ.get("CASES_PER_FUNCTION", "12"))

VALUES = {
    "bool": ["t", "f"],
    "int2": ["0", "1", "-1", "7", "-8", "32767", "-32768", "100"],
    "int4": ["0", "1", "-1", "2", "7", "-3", "12", "2147483647", "-2147483648", "100000", "-70000"],
    "int8": ["0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808", "3000000000", "-5000000000"],
    "oid": ["0", "1", "16384", "4294967295"],
    "xid": ["0", "7", "4294967295"],
    "cid": ["0", "7"],
    "float4": ["0", "-0", "1", "-1.5", "2.5", "0.1", "3e38", "-3e38", "1e-40", "NaN", "Infinity", "-Infinity", "32767.5"],
    "float8": ["0", "-0", "1", "-1", "0.5", "1.5", "2.5", "-2.5", "1e308", "5e-324", "1e-200", "NaN", "Infinity",
               "-Infinity", "123456789.123", "9.3e18", "0.7", "710", "-800"],
    "numeric": ["0", "0.000", "1", "1.00", "-1", "2", "0.5", "-0.5", "2.5", "10", "9999", "10000", "0.0001", "123456.789",
                "-98765.4321", "12345678901234567890.123456789", "-1e30", "1e-20", "7.77", "NaN", "Infinity", "-Infinity",
                "0.9", "1.05", "1234567890123456"],
    "text": ["", "a", "A", "b", "abc", "ABC", "aäoöü", "%", "_", "a%", "a_c", "%b%", "\\%", "  pad  ", "hello, World",
             "日本語", "a\\", "'quote", "áéÍ ÓÚ", ".", "^a", "[a-c]+", "(ab)*", "\\d+", "a|b", "$1 {x}", "a{2,3}", "aaab"],
    "bpchar": ["", "a", "a  ", "abc", "ABC  ", "äö "],
    "varchar": ["", "a", "abc  ", "日本語"],
    "name": ["a", "abc", "Zz"],
    '"char"': ["a", "z", ""],
    "bytea": ["", "\\x00", "\\x00ff", "\\x6162", "\\x616263", "\\xdeadbeef00"],
    "date": ["2000-01-01", "1999-12-31", "2020-02-29", "2024-03-10", "0044-03-15 BC", "4714-11-24 BC", "5874897-12-31",
             "infinity", "-infinity", "2021-01-03", "0001-01-01"],
    "time": ["00:00:00", "12:34:56.789", "23:59:59.999999", "24:00:00"],
    "timestamp": ["2000-01-01 00:00:00", "2020-02-29 12:34:56.789", "1969-12-31 23:59:59.999999", "2024-03-10 02:30:00",
                  "2024-11-03 01:30:00", "0044-03-15 10:00:00 BC", "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59",
                  "infinity", "-infinity", "2050-07-04 10:00:00"],
    "timestamptz": ["2000-01-01 00:00:00+00", "2020-02-29 12:34:56.789-05", "2024-03-10 07:30:00+00",
                    "2024-11-03 05:30:00+00", "2024-11-03 06:30:00+00", "0044-03-15 10:00:00+00 BC",
                    "294276-12-31 23:59:59+00", "infinity", "-infinity", "1883-11-18 17:00:00+00", "2050-07-04 10:00:00+00"],
    "interval": ["0", "1 day", "-1 day", "1 mon", "1 year 2 mons 3 days 04:05:06.789", "24:00:00", "30 days",
                 "-1 mon +2 days -03:04:05.000006", "178000000 years", "00:00:00.5", "40 days 30:00:00"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": ["{}", "[1, {\"x\":2} ,[3]]", "{\"a\": {\"b\" : [1, 2]}, \"a\":  \"x\\u00e9\\n\" , \"n\":null}", "5", "\"s\"", "null", "true",
             " [ \"q\\\"]\" , null ] "],
    "jsonb": ["{}", "[1, {\"x\":2} ,[3]]", "{\"a\": {\"b\" : [1, 2]}, \"c\":  \"x\\u00e9\\n\" , \"n\":null}", "5", "\"s\"", "null", "true",
              " [ \"q\\\"]\" , null ] "],
    "int4[]": ["{}", "{1,2,3}", "{1,2}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={5,6}", "{3}", "{NULL}"],
}
UNITS = ["microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
         "century", "millennium", "isoyear", "julian", "dow", "isodow", "doy", "epoch", "timezone", "timezone_hour", "foo"]
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "EST", "CEST", "+02", "-03:30", "FOO+5", "nozone", "Europe/Berlin"]
COUNTS = ["0", "1", "2", "3", "-1", "-2", "5", "12"]
# By function name and place of the argument, where values of the type alone would rarely mean anything.
SPECIAL = {
    ("extract", 0): UNITS, ("date_part", 0): UNITS, ("date_trunc", 0): UNITS, ("date_trunc", 2): ZONES,
    ("encode", 1): ["hex", "base64", "escape", "foo"], ("decode", 1): ["hex", "base64", "escape", "foo"],
    ("json_object_field", 1): ["a", "n", "x", ""], ("json_object_field_text", 1): ["a", "n", "x", ""],
    ("jsonb_object_field", 1): ["a", "c", "n", "x"], ("jsonb_object_field_text", 1): ["a", "c", "n", "x"],
    ("json_array_element", 1): COUNTS, ("json_array_element_text", 1): COUNTS, ("jsonb_array_element", 1): COUNTS,
    ("jsonb_array_element_text", 1): COUNTS,
    ("to_char", 1): ["YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM", "Day, DD Month YYYY", "FMDay, FMDDth FMMonth FMYYYY", "dy mon d DDD DD ID IW IYYY IDDD",
                     "HH12:MI:SS AM", "hh:mi p.m. a.d. BC", "Q CC W WW J", "Y,YYY YYY YY Y IYY IY I", "TZ tz OF TZH:TZM", "MS FF1 FF4 SSSS SSSSS",
                     'YYYY"y"MM"\\"m"', "RM|FMRM|rm|MON Mon mon", "DDTH Mth D th yyyy-mm", "TMMonth|TMDay|FX YYYY", "FMHH24:FMMI:FMSS.FMMS DAY|DY",
                     "", "xyz 1 %", "DDDth Jth HH24TH MIth SSSSth", "FMOF FMCC FMTZH fmDD"],
    ("like_escape", 1): ["", "\\", "#", "ab", "x"], ("round", 1): COUNTS, ("trunc", 1): COUNTS,
    ("repeat", 1): COUNTS, ("lpad", 1): COUNTS, ("rpad", 1): COUNTS, ("left", 1): COUNTS, ("right", 1): COUNTS,
    ("split_part", 2): COUNTS, ("substr", 1): COUNTS, ("substr", 2): COUNTS, ("substring", 1): COUNTS,
    ("substring", 2): COUNTS, ("overlay", 2): COUNTS, ("overlay", 3): COUNTS,
    ("make_interval", 0): COUNTS, ("make_interval", 1): COUNTS, ("make_interval", 2): COUNTS, ("make_interval", 3): COUNTS,
    ("make_interval", 4): COUNTS, ("make_interval", 5): COUNTS, ("make_interval", 6): ["0", "7.25"],
    ("make_date", 0): ["2020", "-44", "0", "1999", "6000000"], ("make_date", 1): ["1", "12", "13", "2"],
    ("make_date", 2): ["1", "29", "31", "32"], ("make_time", 0): ["0", "24", "12", "25"], ("make_time", 1): ["0", "59", "60"],
    ("make_time", 2): ["0", "59.5", "60", "61", "-1"], ("make_timestamp", 0): ["2020", "-44", "0"],
    ("make_timestamp", 1): ["1", "12", "13", "2"], ("make_timestamp", 2): ["1", "29"], ("make_timestamp", 3): ["0", "23", "24"],
    ("make_timestamp", 4): ["0", "59"], ("make_timestamp", 5): ["0", "59.5", "60"],
    ("numeric", 1): ["327686", "196612", "655368", "264194", "131081", "2490382", "-1"],
    ("varchar", 1): ["4", "5", "7", "14", "-1"], ("bpchar", 1): ["4", "5", "7", "14", "-1"],
    ("timestamp", 1): ["0", "1", "3", "6"], ("timestamptz", 1): ["0", "1", "3", "6"], ("time", 1): ["0", "1", "3"],
    ("interval", 1): ["2147418112", "2147418114", "327679", "458751", "67698687", "134283263"], ("to_timestamp", 0): ["0", "1.5", "-1e9", "1e300", "NaN", "Infinity"],
}
# They depend on the clock, or take any number of arguments of any type.
SKIP = {"now", "transaction_timestamp", "statement_timestamp", "concat", "concat_ws", "textanycat", "anytextcat",
        "num_nulls", "num_nonnulls", "array_to_string"}

SETUP = """
set timezone = 'America/New_York';
create temp table answers(n serial, function oid, args text, result_type oid, result text, state text, message text);
create function pg_temp.ask(function oid, args text, call text, result_type oid) returns void language plpgsql as $$
declare shown text; is_null bool; state text; message text;
begin
  begin
    execute format('select x is null, format(''%%s'', x) from (select %s) y(x)', call) into is_null, shown;
    if is_null then shown := null; end if;
  exception when others then
    get stacked diagnostics state = returned_sqlstate, message = message_text;
  end;
  insert into answers(function, args, result_type, result, state, message)
    values (function, args, result_type, shown, state, message);
end $$;
"""


def psql(sql):
    done = subprocess.run(["psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1"], input=sql, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def quote(text):
    return "'" + text.replace("'", "''") + "'"


def main():
    oids = ",".join(line.split()[0] for line in sys.stdin if line[:1].isdigit())
    functions = psql(f"""
        select p.oid, p.proname, case p.prorettype when 'anyarray'::regtype then 1007 else p.prorettype end,
               (select string_agg(case t when 'anyarray'::regtype then '1007 int4[]' when 1042 then '1042 bpchar'
                                         else t || ' ' || t::regtype end, ',' order by n)
                from unnest(p.proargtypes) with ordinality a(t, n))
        from pg_proc p where oid in ({oids}) order by 1""")
    statements = [SETUP]
    for line in functions.splitlines():
        oid, name, result_type, arguments = line.split("\t")
        types = [a.split(" ", 1) for a in arguments.split(",")] if arguments else []
        if name in SKIP or (name == "age" and len(types) == 1):
            continue
        lists = []
        for place, (_, type_name) in enumerate(types):
            type_name = {"character varying": "varchar"}.get(type_name, type_name)
            short = psql_names().get(type_name, type_name)
            values = SPECIAL.get((name, place), VALUES[short])
            if name == "timezone" and place == 0 and short == "text":
                values = ZONES
            lists.append(values)
        combinations = list(itertools.product(*lists))
        random.shuffle(combinations)
        for values in combinations[:CASES_PER_FUNCTION]:
            args = " ".join(f"{t[0]}={v.encode().hex()}" for t, v in zip(types, values))
            call = f'pg_catalog."{name}"(' + ", ".join(f"{quote(v)}::{t[1]}" for t, v in zip(types, values)) + ")"
            statements.append(f"select pg_temp.ask({oid}, {quote(args)}, {quote(call)}, {result_type});")
    statements.append("copy (select function, args, result_type, result, state, message from answers order by n) to stdout;")
    sys.stdout.write("".join(l + "\n" for l in psql("\n".join(statements)).splitlines() if l.strip()))


def psql_names():
    return {"boolean": "bool", "smallint": "int2", "integer": "int4", "bigint": "int8", "real": "float4",
            "double precision": "float8", "time without time zone": "time", "timestamp without time zone": "timestamp",
            "timestamp with time zone": "timestamptz"}


main()

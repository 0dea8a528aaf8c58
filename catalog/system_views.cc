#include "catalog/system_views.h"

#include <iterator>

namespace sluice {
namespace {

struct SystemView {
  std::string_view schema, name, sql;
};

// Columns in Postgres's order and of its types: a test compares.
constexpr SystemView kViews[] = {
    {"pg_catalog", "pg_roles", R"(
SELECT a.rolname, a.rolsuper, a.rolinherit, a.rolcreaterole, a.rolcreatedb, a.rolcanlogin,
       a.rolreplication, a.rolconnlimit, '********'::text AS rolpassword, a.rolvaliduntil,
       a.rolbypassrls, s.setconfig AS rolconfig, a.oid
FROM pg_catalog.pg_authid a
LEFT JOIN pg_catalog.pg_db_role_setting s ON a.oid = s.setrole AND s.setdatabase = 0)"},
    {"pg_catalog", "pg_shadow", R"(
SELECT a.rolname AS usename, a.oid AS usesysid, a.rolcreatedb AS usecreatedb,
       a.rolsuper AS usesuper, a.rolreplication AS userepl, a.rolbypassrls AS usebypassrls,
       a.rolpassword AS passwd, a.rolvaliduntil AS valuntil, s.setconfig AS useconfig
FROM pg_catalog.pg_authid a
LEFT JOIN pg_catalog.pg_db_role_setting s ON a.oid = s.setrole AND s.setdatabase = 0
WHERE a.rolcanlogin)"},
    {"pg_catalog", "pg_user", R"(
SELECT usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls,
       '********'::text AS passwd, valuntil, useconfig
FROM pg_catalog.pg_shadow)"},
    {"pg_catalog", "pg_group", R"(
SELECT r.rolname AS groname, r.oid AS grosysid,
       ARRAY(SELECT m.member FROM pg_catalog.pg_auth_members m WHERE m.roleid = r.oid) AS grolist
FROM pg_catalog.pg_authid r
WHERE NOT r.rolcanlogin)"},
    {"pg_catalog", "pg_tables", R"(
SELECT n.nspname AS schemaname, c.relname AS tablename,
       pg_catalog.pg_get_userbyid(c.relowner) AS tableowner, t.spcname AS tablespace,
       c.relhasindex AS hasindexes, c.relhasrules AS hasrules, c.relhastriggers AS hastriggers,
       c.relrowsecurity AS rowsecurity
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = c.reltablespace
WHERE c.relkind IN ('r', 'p'))"},
    {"pg_catalog", "pg_views", R"(
SELECT n.nspname AS schemaname, c.relname AS viewname,
       pg_catalog.pg_get_userbyid(c.relowner) AS viewowner,
       pg_catalog.pg_get_viewdef(c.oid) AS definition
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v')"},
    {"pg_catalog", "pg_matviews", R"(
SELECT n.nspname AS schemaname, c.relname AS matviewname,
       pg_catalog.pg_get_userbyid(c.relowner) AS matviewowner, t.spcname AS tablespace,
       c.relhasindex AS hasindexes, c.relispopulated AS ispopulated,
       pg_catalog.pg_get_viewdef(c.oid) AS definition
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = c.reltablespace
WHERE c.relkind = 'm')"},
    {"pg_catalog", "pg_indexes", R"(
SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname,
       t.spcname AS tablespace, pg_catalog.pg_get_indexdef(i.oid) AS indexdef
FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class c ON c.oid = x.indrelid
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = i.reltablespace)"},
    {"pg_catalog", "pg_sequences", R"(
SELECT n.nspname AS schemaname, c.relname AS sequencename,
       pg_catalog.pg_get_userbyid(c.relowner) AS sequenceowner, s.seqtypid::regtype AS data_type,
       s.seqstart AS start_value, s.seqmin AS min_value, s.seqmax AS max_value,
       s.seqincrement AS increment_by, s.seqcycle AS cycle, s.seqcache AS cache_size,
       pg_catalog.pg_sequence_last_value(c.oid) AS last_value
FROM pg_catalog.pg_sequence s
JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace)"},
    {"pg_catalog", "pg_rules", R"(
SELECT n.nspname AS schemaname, c.relname AS tablename, r.rulename,
       pg_catalog.pg_get_ruledef(r.oid) AS definition
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN')"},
    {"pg_catalog", "pg_user_mappings", R"(
SELECT u.oid AS umid, s.oid AS srvid, s.srvname, u.umuser,
       CASE WHEN u.umuser = 0 THEN 'public'::name ELSE a.rolname END AS usename, u.umoptions
FROM pg_catalog.pg_user_mapping u
JOIN pg_catalog.pg_foreign_server s ON u.umserver = s.oid
LEFT JOIN pg_catalog.pg_authid a ON a.oid = u.umuser)"},
    {"information_schema", "information_schema_catalog_name", R"(
SELECT pg_catalog.current_database() AS catalog_name)"},
    {"information_schema", "schemata", R"(
SELECT pg_catalog.current_database() AS catalog_name, n.nspname AS schema_name, u.rolname
       AS schema_owner,
       NULL::name AS default_character_set_catalog, NULL::name AS default_character_set_schema,
       NULL::name AS default_character_set_name, NULL::varchar AS sql_path
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_authid u ON n.nspowner = u.oid)"},
    {"information_schema", "tables", R"(
SELECT pg_catalog.current_database() AS table_catalog, n.nspname AS table_schema, c.relname
       AS table_name,
       (CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN' ELSE 'BASE TABLE' END)::varchar
         AS table_type,
       NULL::name AS self_referencing_column_name, NULL::varchar AS reference_generation,
       NULL::name AS user_defined_type_catalog, NULL::name AS user_defined_type_schema,
       NULL::name AS user_defined_type_name,
       (CASE WHEN c.relkind IN ('r', 'p', 'f') THEN 'YES' ELSE 'NO' END)::varchar(3)
         AS is_insertable_into,
       'NO'::varchar(3) AS is_typed, NULL::varchar AS commit_action
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'f', 'p'))"},
    {"information_schema", "views", R"(
SELECT pg_catalog.current_database() AS table_catalog, n.nspname AS table_schema, c.relname
       AS table_name,
       pg_catalog.pg_get_viewdef(c.oid)::varchar AS view_definition, 'NONE'::varchar
       AS check_option,
       'NO'::varchar(3) AS is_updatable, 'NO'::varchar(3) AS is_insertable_into,
       'NO'::varchar(3) AS is_trigger_updatable, 'NO'::varchar(3) AS is_trigger_deletable,
       'NO'::varchar(3) AS is_trigger_insertable_into
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON n.oid = c.relnamespace
WHERE c.relkind = 'v')"},
    {"information_schema", "columns", R"(
SELECT pg_catalog.current_database() AS table_catalog, n.nspname AS table_schema, c.relname
       AS table_name,
       a.attname AS column_name, a.attnum::int4 AS ordinal_position,
       (CASE WHEN a.attgenerated = '' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END)::varchar
         AS column_default,
       (CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END)::varchar(3) AS is_nullable,
       (CASE WHEN t.typelem <> 0 AND t.typlen = -1 AND t.typcategory = 'A' THEN 'ARRAY'
             WHEN tn.nspname = 'pg_catalog' THEN pg_catalog.format_type(a.atttypid, NULL)
             ELSE 'USER-DEFINED' END)::varchar AS data_type,
       CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod <> -1 THEN a.atttypmod - 4
            WHEN a.atttypid IN (1560, 1562) AND a.atttypmod <> -1 THEN a.atttypmod
       END AS character_maximum_length,
       CASE WHEN a.atttypid = 25 THEN 1073741824
            WHEN a.atttypid IN (1042, 1043) THEN
              CASE WHEN a.atttypmod = -1 THEN 1073741824 ELSE (a.atttypmod - 4) * 4 END
       END AS character_octet_length,
       CASE a.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
            WHEN 701 THEN 53
            WHEN 1700 THEN CASE WHEN a.atttypmod <> -1 THEN (a.atttypmod - 4) >> 16 & 65535 END
       END AS numeric_precision,
       CASE WHEN a.atttypid IN (20, 21, 23, 700, 701) THEN 2 WHEN a.atttypid = 1700 THEN 10 END
         AS numeric_precision_radix,
       CASE WHEN a.atttypid IN (20, 21, 23) THEN 0
            WHEN a.atttypid = 1700 AND a.atttypmod <> -1 THEN (a.atttypmod - 4) & 65535
       END AS numeric_scale,
       CASE WHEN a.atttypid = 1082 THEN 0
            WHEN a.atttypid IN (1083, 1114, 1184, 1266) THEN
              CASE WHEN a.atttypmod < 0 THEN 6 ELSE a.atttypmod END
            WHEN a.atttypid = 1186 THEN
              CASE WHEN a.atttypmod < 0 OR a.atttypmod & 65535 = 65535 THEN 6
                   ELSE a.atttypmod & 65535 END
       END AS datetime_precision,
       NULL::varchar AS interval_type, NULL::int4 AS interval_precision,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema, NULL::name
       AS character_set_name,
       CASE WHEN co.oid IS NOT NULL THEN pg_catalog.current_database() END AS collation_catalog,
       cn.nspname AS collation_schema, co.collname AS collation_name,
       NULL::name AS domain_catalog, NULL::name AS domain_schema, NULL::name AS domain_name,
       pg_catalog.current_database() AS udt_catalog, tn.nspname AS udt_schema, t.typname
       AS udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality, a.attnum::text::name AS dtd_identifier,
       'NO'::varchar(3) AS is_self_referencing,
       (CASE WHEN a.attidentity IN ('a', 'd') THEN 'YES' ELSE 'NO' END)::varchar(3) AS is_identity,
       (CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END)::varchar
         AS identity_generation,
       s.seqstart::varchar AS identity_start, s.seqincrement::varchar AS identity_increment,
       s.seqmax::varchar AS identity_maximum, s.seqmin::varchar AS identity_minimum,
       (CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END)::varchar(3) AS identity_cycle,
       (CASE WHEN a.attgenerated = '' THEN 'NEVER' ELSE 'ALWAYS' END)::varchar AS is_generated,
       (CASE WHEN a.attgenerated <> '' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END)::varchar
         AS generation_expression,
       (CASE WHEN c.relkind IN ('r', 'p', 'f') THEN 'YES' ELSE 'NO' END)::varchar(3) AS is_updatable
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON a.attrelid = c.oid
JOIN pg_catalog.pg_namespace n ON c.relnamespace = n.oid
JOIN pg_catalog.pg_type t ON a.atttypid = t.oid
JOIN pg_catalog.pg_namespace tn ON t.typnamespace = tn.oid
LEFT JOIN pg_catalog.pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
LEFT JOIN pg_catalog.pg_collation co
  ON a.attcollation = co.oid AND co.oid NOT IN (100)
LEFT JOIN pg_catalog.pg_namespace cn ON co.collnamespace = cn.oid
LEFT JOIN pg_catalog.pg_depend dep
  ON dep.classid = 1259 AND dep.refclassid = 1259 AND dep.deptype = 'i'
  AND dep.refobjid = c.oid AND dep.refobjsubid = a.attnum
LEFT JOIN pg_catalog.pg_sequence s ON s.seqrelid = dep.objid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p'))"},
    {"information_schema", "table_constraints", R"(
SELECT pg_catalog.current_database() AS constraint_catalog, cn.nspname AS constraint_schema,
       con.conname AS constraint_name, pg_catalog.current_database() AS table_catalog,
       n.nspname AS table_schema,
       c.relname AS table_name,
       (CASE con.contype WHEN 'c' THEN 'CHECK' WHEN 'f' THEN 'FOREIGN KEY' WHEN 'p'
       THEN 'PRIMARY KEY'
                         WHEN 'u' THEN 'UNIQUE' END)::varchar AS constraint_type,
       (CASE WHEN con.condeferrable THEN 'YES' ELSE 'NO' END)::varchar(3) AS is_deferrable,
       (CASE WHEN con.condeferred THEN 'YES' ELSE 'NO' END)::varchar(3) AS initially_deferred,
       'YES'::varchar(3) AS enforced,
       (CASE WHEN con.contype = 'u' THEN 'YES' END)::varchar(3) AS nulls_distinct
FROM pg_catalog.pg_constraint con
JOIN pg_catalog.pg_namespace cn ON cn.oid = con.connamespace
JOIN pg_catalog.pg_class c ON con.conrelid = c.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE con.contype NOT IN ('t', 'x') AND c.relkind IN ('r', 'p')
UNION ALL
SELECT pg_catalog.current_database(), n.nspname,
       (n.oid::text || '_' || c.oid::text || '_' || a.attnum::text || '_not_null')::name,
       pg_catalog.current_database(), n.nspname, c.relname, 'CHECK'::varchar, 'NO'::varchar(3),
       'NO'::varchar(3), 'YES'::varchar(3), NULL::varchar(3)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON a.attrelid = c.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p'))"},
    {"information_schema", "check_constraints", R"(
SELECT pg_catalog.current_database() AS constraint_catalog, n.nspname AS constraint_schema,
       con.conname AS constraint_name,
       pg_catalog.substr(pg_catalog.pg_get_constraintdef(con.oid), 7)::varchar AS check_clause
FROM pg_catalog.pg_constraint con JOIN pg_catalog.pg_namespace n ON n.oid = con.connamespace
WHERE con.contype = 'c'
UNION ALL
SELECT pg_catalog.current_database(), n.nspname,
       (n.oid::text || '_' || c.oid::text || '_' || a.attnum::text || '_not_null')::name,
       (a.attname::text || ' IS NOT NULL')::varchar
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON a.attrelid = c.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p'))"},
    {"information_schema", "key_column_usage", R"(
SELECT pg_catalog.current_database() AS constraint_catalog, cn.nspname AS constraint_schema,
       con.conname AS constraint_name, pg_catalog.current_database() AS table_catalog,
       n.nspname AS table_schema,
       c.relname AS table_name, a.attname AS column_name, k.n::int4 AS ordinal_position,
       (CASE WHEN con.contype = 'f'
             THEN pg_catalog.array_position(other.conkey, con.confkey[k.n::int4]) END)::int4
         AS position_in_unique_constraint
FROM pg_catalog.pg_constraint con
JOIN pg_catalog.pg_namespace cn ON cn.oid = con.connamespace
JOIN pg_catalog.pg_class c ON con.conrelid = c.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_constraint other
  ON con.contype = 'f' AND other.conindid = con.conindid AND other.conrelid = con.confrelid
     AND other.contype IN ('p', 'u')
CROSS JOIN LATERAL pg_catalog.unnest(con.conkey) WITH ORDINALITY AS k(attnum, n)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE con.contype IN ('p', 'u', 'f'))"},
    {"information_schema", "referential_constraints", R"(
SELECT pg_catalog.current_database() AS constraint_catalog, n.nspname AS constraint_schema,
       con.conname AS constraint_name,
       CASE WHEN other.oid IS NOT NULL THEN pg_catalog.current_database() END
       AS unique_constraint_catalog,
       un.nspname AS unique_constraint_schema, other.conname AS unique_constraint_name,
       (CASE con.confmatchtype WHEN 'f' THEN 'FULL' WHEN 'p' THEN 'PARTIAL'
       ELSE 'NONE' END)::varchar
         AS match_option,
       (CASE con.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
          WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END)::varchar
         AS update_rule,
       (CASE con.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
          WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END)::varchar
         AS delete_rule
FROM pg_catalog.pg_constraint con
JOIN pg_catalog.pg_namespace n ON n.oid = con.connamespace
LEFT JOIN pg_catalog.pg_constraint other
  ON other.conindid = con.conindid AND other.conrelid = con.confrelid
     AND other.contype IN ('p', 'u')
LEFT JOIN pg_catalog.pg_namespace un ON un.oid = other.connamespace
WHERE con.contype = 'f')"},
    {"information_schema", "constraint_column_usage", R"(
SELECT pg_catalog.current_database() AS table_catalog, n.nspname AS table_schema,
       c.relname AS table_name, a.attname AS column_name, pg_catalog.current_database()
       AS constraint_catalog,
       cn.nspname AS constraint_schema, con.conname AS constraint_name
FROM pg_catalog.pg_constraint con
JOIN pg_catalog.pg_namespace cn ON cn.oid = con.connamespace
JOIN pg_catalog.pg_class c
  ON c.oid = CASE con.contype WHEN 'f' THEN con.confrelid ELSE con.conrelid END
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL pg_catalog.unnest(
  CASE con.contype WHEN 'f' THEN con.confkey ELSE con.conkey END) AS k(attnum)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE con.contype IN ('c', 'p', 'u', 'f'))"},
    {"information_schema", "sequences", R"(
SELECT pg_catalog.current_database() AS sequence_catalog, n.nspname AS sequence_schema,
       c.relname AS sequence_name, pg_catalog.format_type(s.seqtypid, NULL)::varchar AS data_type,
       CASE s.seqtypid WHEN 21 THEN 16 WHEN 23 THEN 32 ELSE 64 END AS numeric_precision,
       2 AS numeric_precision_radix, 0 AS numeric_scale, s.seqstart::varchar AS start_value,
       s.seqmin::varchar AS minimum_value, s.seqmax::varchar AS maximum_value,
       s.seqincrement::varchar AS increment,
       (CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END)::varchar(3) AS cycle_option
FROM pg_catalog.pg_sequence s
JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  WHERE d.classid = 1259 AND d.objid = c.oid AND d.deptype = 'i'))"},
};

}  // namespace

std::string_view SystemViewSql(std::string_view schema, std::string_view name) {
  for (const SystemView& view : kViews)
    if (view.schema == schema && view.name == name) return view.sql;
  return {};
}

}  // namespace sluice

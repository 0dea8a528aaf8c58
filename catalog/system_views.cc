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
};

}  // namespace

std::string_view SystemViewSql(std::string_view schema, std::string_view name) {
  for (const SystemView& view : kViews)
    if (view.schema == schema && view.name == name) return view.sql;
  return {};
}

}  // namespace sluice

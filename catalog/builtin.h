// Postgres's own catalogs (pg_type, pg_proc, pg_operator, pg_cast, pg_aggregate), as data: the rows
// are read from a Postgres by catalog/builtin.sh into catalog/data/*.tsv and are part of the
// binary. Loaded once, by the postmaster before it forks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/oid.h"

namespace sluice {

struct TypeInfo {
  Oid oid;
  std::string_view schema;
  std::string_view name;
  int16_t length;  // typlen: -1 varlena
  char kind;       // typtype: b, c, d, e, p, r, m
  char category;   // typcategory
  bool preferred;  // typispreferred
  Oid element;     // typelem of true arrays
  Oid array;       // typarray
  Oid base;        // typbasetype of domains
  Oid collation;   // typcollation
};

struct ProcInfo {
  Oid oid;
  std::string_view name;
  char kind;  // prokind: f, a, w, p
  Oid result;
  bool returns_set;
  bool strict;
  char volatility;  // i, s, v
  Oid variadic;     // element type or 0
  uint16_t default_count;
  std::span<const Oid> args;
  char aggregate_kind = '-';      // of prokind a: n normal, o ordered-set, h hypothetical-set
  uint16_t direct_arg_count = 0;  // of ordered-set aggregates
};

struct OperatorInfo {
  Oid oid;
  std::string_view name;
  Oid left;  // 0: prefix operator
  Oid right;
  Oid result;
  Oid function;
  Oid commutator;
  Oid negator;
  bool can_merge, can_hash;
};

struct CastInfo {
  Oid source, target;
  Oid function;  // 0: binary coercible (method b) or by text (method i)
  char context;  // e explicit, a assignment, i implicit
  char method;   // f, b, i
};

void LoadBuiltinCatalog();  // idempotent; all below need it

const TypeInfo* FindType(Oid oid);                // user types too, once registered
const TypeInfo* FindType(std::string_view name);  // pg_catalog, by internal name ("int4")
const ProcInfo* FindProc(Oid oid);
std::span<const ProcInfo* const> FindProcs(std::string_view name);
const OperatorInfo* FindOperator(Oid oid);
std::span<const OperatorInfo* const> FindOperators(std::string_view name);
const CastInfo* FindCast(Oid source, Oid target);
// The default btree operators of a type: <, =, > (pg_operator oids); 0 where it has none. Those of
// the type it is binary-coercible to for varchar, of anyarray for arrays of ordered elements, of
// anyenum, …
struct OrderOperators {
  Oid less, equal, greater;
};
OrderOperators FindOrderOperators(Oid type);

// Postgres's format_type(type, typmod), as SQL that means exactly that type: "character
// varying(10)", "integer[]", … Without a typmod char(n)'s type is "bpchar" ("character" would mean
// character(1)).
std::string FormatType(Oid type, int32_t typmod = -1);
// Postgres's format_type(type, NULL), as messages show types: "character" for bpchar.
std::string FormatTypeName(Oid type);

// A type that is not Postgres's own, under Sluice's oid. Each process registers what its Catalog
// has; a later registration of the same oid replaces the earlier one. Copies the strings.
void RegisterUserType(const TypeInfo& info);

// Whether quote_ident() quotes the word for being one of the grammar's.
bool IsKeyword(std::string_view word);

}  // namespace sluice

// pg_class, pg_attribute and what hangs on relations.
#include <unordered_map>

#include "catalog/quote.h"
#include "catalog/system_catalog.h"
#include "postmaster/pg_catalog.h"
#include "postmaster/running_query.h"
#include "postmaster/view_reader.h"

namespace sluice {

std::string PartitionKeyText(const Relation& relation) {
  static constexpr const char* kStrategies[] = {"", "HASH", "LIST", "RANGE"};
  std::string text = std::string(kStrategies[static_cast<int>(relation.key.strategy)]) + " (";
  for (size_t i = 0; i < relation.key.expressions.size(); i++)
    text += (i == 0 ? "" : ", ") + relation.key.expressions[i];
  return text + ")";
}

namespace {

// A bound's value as pg_get_expr() writes constants: numbers bare, the rest quoted.
std::string BoundLiteral(const Relation& parent, size_t key, const std::string& value) {
  const TypeInfo* type = FindType(parent.key.types[key]);
  return type != nullptr && type->category == 'N' ? value : QuoteLiteral(value);
}

std::string RangeText(const Relation& parent, const std::vector<PartitionBound::RangeDatum>& row) {
  std::string text;
  for (size_t i = 0; i < row.size(); i++) {
    if (i > 0) text += ", ";
    text += row[i].infinite < 0   ? "MINVALUE"
            : row[i].infinite > 0 ? "MAXVALUE"
                                  : BoundLiteral(parent, i, row[i].value);
  }
  return text;
}

}  // namespace

std::string PartitionBoundText(const Catalog& catalog, const Relation& relation) {
  const Relation& parent = *catalog.FindRelation(relation.parent);
  const PartitionBound& bound = relation.bound;
  if (bound.is_default) return "DEFAULT";
  switch (parent.key.strategy) {
    case PartitionStrategy::kNone:
      break;
    case PartitionStrategy::kHash:
      return fmt::format("FOR VALUES WITH (modulus {}, remainder {})", bound.modulus,
                         bound.remainder);
    case PartitionStrategy::kList: {
      std::string text = "FOR VALUES IN (";
      for (size_t i = 0; i < bound.list.size(); i++) {
        if (i > 0) text += ", ";
        text += bound.list[i] ? BoundLiteral(parent, 0, *bound.list[i]) : "NULL";
      }
      return text + ")";
    }
    case PartitionStrategy::kRange:
      return "FOR VALUES FROM (" + RangeText(parent, bound.from) + ") TO (" +
             RangeText(parent, bound.to) + ")";
  }
  return "";
}

namespace {

bool IsPartition(const Catalog& catalog, const Relation& relation) {
  const Relation* parent = catalog.FindRelation(relation.parent);
  return parent != nullptr && parent->kind == RelationKind::kPartitioned;
}

}  // namespace

// What pg_class has the same for everything.
CatalogRow MakeClassRow(Oid oid, const std::string& name, Oid schema, Oid owner, char kind) {
  constexpr Oid kHeap = 2, kBtree = 403;
  CatalogRow row("pg_class");
  row.Set("oid", oid).Set("relname", CatalogValue(name)).Set("relnamespace", schema);
  row.Set("relowner", owner).Set("relkind", CatalogValue(std::string(1, kind)));
  row.Set("relam", kind == 'r' || kind == 'm' ? kHeap : kind == 'i' ? kBtree : kInvalidOid);
  row.Set({"reltype", "reloftype", "relfilenode", "reltablespace", "relpages", "relallvisible",
           "reltoastrelid", "relchecks", "relrewrite", "relfrozenxid", "relminmxid", "reltuples"},
          "0");
  row.Set({"relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass",
           "relrowsecurity", "relforcerowsecurity", "relispartition"},
          "f");
  row.Set("relispopulated", true).Set("relpersistence", "p");
  row.Set("relreplident", kind == 'r' || kind == 'm' ? "d" : "n");
  return row;
}

namespace {

// A store that cannot be read must not take the catalog with it.
bool IsPopulated(const QuerySession& session, const Relation& view,
                 std::unique_ptr<ViewSnapshot>* views) {
  try {
    if (*views == nullptr) *views = LookAtViews(session.data_directory);
    return StatusOfView(views->get(), view).state == ViewState::kCreated;
  } catch (const QueryError&) {
    return false;
  }
}

void ScanClass(const QuerySession& session, const VirtualRowSink& sink) {
  const Catalog& catalog = *session.catalog;
  for (const VirtualTable& table : AllVirtualTables()) {
    if (table.schema != "sluice") continue;
    CatalogRow row = MakeClassRow(table.oid, std::string(table.name), kSluiceSchemaOid,
                                  kBootstrapRoleOid, table.kind);
    row.Set("relnatts", table.columns.size()).Set("relhasrules", true);
    sink(row.values());
  }
  std::unique_ptr<ViewSnapshot> views;
  std::set<Oid> referencing;  // and referenced
  for (const auto& [oid, relation] : catalog.relations)
    for (const Constraint& constraint : relation.constraints)
      if (constraint.kind == ConstraintKind::kForeignKey)
        referencing.insert({oid, constraint.referenced_table});
  for (const auto& [oid, relation] : catalog.relations) {
    if (!IsShown(relation)) continue;
    CatalogRow row = MakeClassRow(oid, relation.name, SchemaOid(catalog, relation.schema),
                                  RoleOid(catalog, relation.owner), RelationKindLetter(relation));
    row.Set("relnatts", relation.columns.size());
    row.Set("reltuples", CatalogValue(fmt::format("{}", relation.row_estimate)));
    row.Set("relhassubclass", !relation.children.empty() && !relation.is_distributed());
    row.Set("relhasindex", !relation.indexes.empty()).Set("relacl", AclValue(relation.acl));
    row.Set("relchecks",
            std::ranges::count(relation.constraints, ConstraintKind::kCheck, &Constraint::kind));
    row.Set("relhasrules", !relation.view_sql.empty());
    if (relation.kind == RelationKind::kMaterializedView) {
      row.Set("relispopulated", IsPopulated(session, relation, &views));
    }
    // Foreign keys are triggers in Postgres; dumps look for them on tables that have some.
    row.Set("relhastriggers", referencing.contains(oid));
    if (IsPartition(catalog, relation)) {
      row.Set("relispartition", true);
      row.Set("relpartbound", CatalogValue(PartitionBoundText(catalog, relation)));
    }
    sink(row.values());
  }
}

// How values of a type lie in Postgres's rows.
struct Layout {
  std::string length, by_value, align, storage;
};

const Layout& LayoutOf(Oid type) {
  static const auto* layouts = [] {
    constexpr size_t kOid = 0, kLength = 4, kByValue = 5, kAlign = 22, kStorage = 23;
    auto* map = new std::unordered_map<Oid, Layout>;
    for (SystemRows rows = SystemRowsOf("pg_type"); rows.Next();)
      map->emplace(static_cast<Oid>(std::stoul(std::string(rows.Raw(kOid)))),
                   Layout{std::string(rows.Raw(kLength)), std::string(rows.Raw(kByValue)),
                          std::string(rows.Raw(kAlign)), std::string(rows.Raw(kStorage))});
    return map;
  }();
  static const Layout kEnum{"4", "t", "i", "p"}, kVarying{"-1", "f", "i", "x"};
  auto found = layouts->find(type);
  if (found != layouts->end()) return found->second;
  const TypeInfo* info = FindType(type);
  return info != nullptr && info->kind == 'e' ? kEnum : kVarying;
}

}  // namespace

CatalogRow MakeAttributeRow(Oid relation, size_t number, std::string_view name, Oid type,
                            int32_t typmod, Oid collation) {
  CatalogRow row("pg_attribute");
  const Layout& layout = LayoutOf(type);
  const TypeInfo* info = FindType(type);
  row.Set("attrelid", relation).Set("attname", CatalogValue(name)).Set("attnum", number);
  row.Set("atttypid", type).Set("atttypmod", typmod).Set("attcollation", collation);
  row.Set("attlen", CatalogValue(layout.length)).Set("attbyval", CatalogValue(layout.by_value));
  row.Set("attalign", CatalogValue(layout.align));
  row.Set("attstorage", CatalogValue(layout.storage));
  row.Set({"attstattarget", "attcacheoff"}, "-1").Set("attinhcount", "0");
  row.Set("attndims", info != nullptr && info->element != 0 ? "1" : "0");
  row.Set({"attcompression", "attidentity", "attgenerated"}, "");
  row.Set({"attnotnull", "atthasdef", "atthasmissing", "attisdropped"}, "f");
  row.Set("attislocal", true);
  return row;
}

Oid CollationOf(Oid type, Oid collation) {
  const TypeInfo* info = FindType(type);
  return collation != kInvalidOid || info == nullptr ? collation : info->collation;
}

namespace {

void ScanAttribute(const QuerySession& session, const VirtualRowSink& sink) {
  for (const VirtualTable& table : AllVirtualTables()) {
    if (table.schema != "sluice") continue;
    for (size_t i = 0; i < table.columns.size(); i++) {
      const VirtualColumn& c = table.columns[i];
      sink(MakeAttributeRow(table.oid, i + 1, c.name, c.type, -1, CollationOf(c.type, 0)).values());
    }
  }
  for (const auto& [oid, relation] : session.catalog->relations) {
    if (!IsShown(relation)) continue;
    for (size_t i = 0; i < relation.columns.size(); i++) {
      const ColumnInfo& c = relation.columns[i];
      CatalogRow row =
          MakeAttributeRow(oid, i + 1, c.name, c.type, c.typmod, CollationOf(c.type, c.collation));
      row.Set("attnotnull", c.not_null).Set("atthasdef", !c.default_sql.empty());
      row.Set("attfdwoptions", OptionsArray(c.options));
      if (c.identity != '\0') row.Set("attidentity", CatalogValue(std::string(1, c.identity)));
      if (c.generated) row.Set("attgenerated", "s");
      sink(row.values());
    }
  }
}

void ScanAttrdef(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, relation] : session.catalog->relations) {
    if (!IsShown(relation)) continue;
    for (size_t i = 0; i < relation.columns.size(); i++) {
      const std::string& sql = relation.columns[i].default_sql;
      if (sql.empty()) continue;
      CatalogRow row("pg_attrdef");
      row.Set("oid", ColumnDefaultOid(oid, i + 1));
      row.Set("adrelid", oid).Set("adnum", i + 1).Set("adbin", CatalogValue(sql));
      sink(row.values());
    }
  }
}

void ScanInherits(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, relation] : session.catalog->relations) {
    if (relation.parent == kInvalidOid || !IsShown(relation)) continue;
    CatalogRow row("pg_inherits");
    row.Set("inhrelid", oid).Set("inhparent", relation.parent).Set("inhseqno", 1);
    row.Set("inhdetachpending", false);
    sink(row.values());
  }
}

void ScanPartitioned(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, relation] : session.catalog->relations) {
    const PartitionKey& key = relation.key;
    if (relation.kind != RelationKind::kPartitioned || relation.is_distributed()) continue;
    std::string columns, collations, zeros, expressions;
    for (size_t i = 0; i < key.expressions.size(); i++) {
      int column = -1;
      for (size_t c = 0; c < relation.columns.size(); c++)
        if (QuoteIdentifier(relation.columns[c].name) == key.expressions[i])
          column = static_cast<int>(c);
      if (column < 0) expressions += (expressions.empty() ? "" : ", ") + key.expressions[i];
      std::string space = i == 0 ? "" : " ";
      columns += space + std::to_string(column + 1);
      collations += space + std::to_string(i < key.collations.size() ? key.collations[i] : 0);
      zeros += space + "0";
    }
    Oid rest = kInvalidOid;
    for (Oid child : relation.children) {
      const Relation* partition = session.catalog->FindRelation(child);
      if (partition != nullptr && partition->bound.is_default) rest = child;
    }
    CatalogRow row("pg_partitioned_table");
    row.Set("partrelid", oid).Set("partnatts", key.expressions.size()).Set("partdefid", rest);
    row.Set("partstrat", key.strategy == PartitionStrategy::kHash   ? "h"
                         : key.strategy == PartitionStrategy::kList ? "l"
                                                                    : "r");
    row.Set("partattrs", CatalogValue(columns)).Set("partclass", CatalogValue(zeros));
    row.Set("partcollation", CatalogValue(collations));
    if (!expressions.empty()) row.Set("partexprs", CatalogValue(expressions));
    sink(row.values());
  }
}

void ScanRewrite(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, relation] : session.catalog->relations) {
    if (relation.view_sql.empty()) continue;
    CatalogRow row("pg_rewrite");
    row.Set("oid", DerivedOid("rule", std::to_string(oid))).Set("rulename", "_RETURN");
    row.Set("ev_class", oid).Set("ev_type", "1").Set("ev_enabled", "O").Set("is_instead", true);
    row.Set("ev_qual", "<>").Set("ev_action", CatalogValue(relation.view_sql));
    sink(row.values());
  }
}

}  // namespace

CatalogScan FindRelationScan(std::string_view table) {
  if (table == "pg_class") return ScanClass;
  if (table == "pg_attribute") return ScanAttribute;
  if (table == "pg_attrdef") return ScanAttrdef;
  if (table == "pg_inherits") return ScanInherits;
  if (table == "pg_partitioned_table") return ScanPartitioned;
  if (table == "pg_rewrite") return ScanRewrite;
  return nullptr;
}

}  // namespace sluice

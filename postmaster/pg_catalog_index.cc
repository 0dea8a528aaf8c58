// pg_index, pg_constraint, pg_sequence, pg_depend: what belongs to tables that Sluice made.
#include "catalog/system_catalog.h"
#include "catalog/virtual_tables.h"
#include "postmaster/ddl_distributed.h"
#include "postmaster/pg_catalog.h"
#include "postmaster/running_query.h"

namespace sluice {
namespace {

constexpr Oid kPgAttrdef = 2604, kPgForeignDataWrapper = 2328, kPgType = 1247, kPgClass = 1259,
              kPgServer = 1417, kPgConstraint = 2606, kPgNamespace = 2615, kPgAuthid = 1260,
              kPgExtension = 3079;

// {1,3} of column indexes 0 and 2; NULL for none.
CatalogValue ColumnNumbers(const std::vector<int>& columns) {
  if (columns.empty()) return std::nullopt;
  std::string text = "{";
  for (int column : columns) text += (text.size() > 1 ? "," : "") + std::to_string(column + 1);
  return text + "}";
}

template <typename Values>
std::string Vector(const Values& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

Oid AccessMethod(const std::string& name) {
  for (SystemRows rows = SystemRowsOf("pg_am"); rows.Next();)
    if (rows.Raw(1) == name) return static_cast<Oid>(std::stoul(std::string(rows.Raw(0))));
  return kInvalidOid;
}

// The default operator class of a type for an access method; kInvalidOid where there is none.
Oid DefaultOperatorClass(Oid method, Oid type) {
  constexpr size_t kOid = 0, kMethod = 1, kType = 6, kDefault = 7;  // pg_opclass's columns
  auto find = [&](Oid wanted) -> Oid {
    for (SystemRows rows = SystemRowsOf("pg_opclass"); rows.Next();)
      if (rows.Raw(kMethod) == std::to_string(method) && rows.Raw(kDefault) == "t" &&
          rows.Raw(kType) == std::to_string(wanted))
        return static_cast<Oid>(std::stoul(std::string(rows.Raw(kOid))));
    return kInvalidOid;
  };
  Oid found = find(type);
  const TypeInfo* info = FindType(type);
  if (found != kInvalidOid || info == nullptr) return found;
  if (type == kVarcharOid) return find(kTextOid);
  if (info->kind == 'e') return find(kAnyenumOid);
  return info->element != kInvalidOid ? find(kAnyarrayOid) : kInvalidOid;
}

template <typename Fn>
void ForEachTable(const QuerySession& session, Fn&& fn) {
  for (const auto& [oid, relation] : session.catalog->relations)
    if (IsShown(relation)) fn(relation);
}

void ScanClass(const QuerySession& session, const VirtualRowSink& sink) {
  const Catalog& catalog = *session.catalog;
  ForEachTable(session, [&](const Relation& table) {
    for (const Index& index : table.indexes) {
      CatalogRow row = MakeClassRow(index.oid, index.name, SchemaOid(catalog, table.schema),
                                    RoleOid(catalog, table.owner), 'i');
      row.Set("relam", AccessMethod(index.method)).Set("relnatts", index.columns.size());
      sink(row.values());
    }
  });
  for (const auto& [oid, sequence] : catalog.sequences) {
    CatalogRow row = MakeClassRow(oid, sequence.name, SchemaOid(catalog, sequence.schema),
                                  RoleOid(catalog, sequence.owner), 'S');
    row.Set("relnatts", 3).Set("relacl", AclValue(sequence.acl));
    sink(row.values());
  }
}

void ScanAttribute(const QuerySession& session, const VirtualRowSink& sink) {
  ForEachTable(session, [&](const Relation& table) {
    for (const Index& index : table.indexes) {
      for (size_t i = 0; i < index.columns.size(); i++) {
        if (index.columns[i] < 0) continue;  // an expression's type is the shards' to know
        const ColumnInfo& c = table.columns[static_cast<size_t>(index.columns[i])];
        sink(MakeAttributeRow(index.oid, i + 1, c.name, c.type, c.typmod,
                              CollationOf(c.type, c.collation))
                 .values());
      }
    }
  });
}

void ScanIndex(const QuerySession& session, const VirtualRowSink& sink) {
  ForEachTable(session, [&](const Relation& table) {
    for (const Index& index : table.indexes) {
      std::vector<int> keys, options;
      std::vector<Oid> collations, classes;
      Oid method = AccessMethod(index.method);
      for (size_t i = 0; i < index.columns.size(); i++) {
        int column = index.columns[i];
        keys.push_back(column + 1);
        if (static_cast<int>(i) >= index.key_columns) continue;
        const ColumnInfo* c = column < 0 ? nullptr : &table.columns[static_cast<size_t>(column)];
        options.push_back(0);
        collations.push_back(c == nullptr ? kInvalidOid : CollationOf(c->type, c->collation));
        classes.push_back(c == nullptr ? kInvalidOid : DefaultOperatorClass(method, c->type));
      }
      bool exclusion = false, immediate = true;
      for (const Constraint& constraint : table.constraints) {
        if (constraint.index != index.oid) continue;
        exclusion |= constraint.kind == ConstraintKind::kExclusion;
        immediate &= !constraint.deferrable;
      }
      CatalogRow row("pg_index");
      row.Set("indexrelid", index.oid).Set("indrelid", table.oid);
      row.Set("indnatts", index.columns.size()).Set("indnkeyatts", index.key_columns);
      row.Set("indisunique", index.unique).Set("indisprimary", index.primary);
      row.Set("indisexclusion", exclusion).Set("indimmediate", immediate);
      row.Set({"indnullsnotdistinct", "indisclustered", "indcheckxmin"}, "f");
      row.Set("indisvalid", index.valid).Set("indisready", true).Set("indislive", true);
      row.Set("indisreplident", index.replica_identity);
      row.Set("indkey", CatalogValue(Vector(keys)));
      row.Set("indcollation", CatalogValue(Vector(collations)));
      row.Set("indclass", CatalogValue(Vector(classes)));
      row.Set("indoption", CatalogValue(Vector(options)));
      if (!index.predicate.empty()) row.Set("indpred", CatalogValue(index.predicate));
      sink(row.values());
    }
  });
}

void ScanConstraint(const QuerySession& session, const VirtualRowSink& sink) {
  ForEachTable(session, [&](const Relation& table) {
    for (const Constraint& constraint : table.constraints) {
      bool foreign = constraint.kind == ConstraintKind::kForeignKey;
      auto letter = [&](char c) { return CatalogValue(std::string(1, foreign ? c : ' ')); };
      CatalogRow row("pg_constraint");
      row.Set("oid", constraint.oid).Set("conname", CatalogValue(constraint.name));
      row.Set("connamespace", SchemaOid(*session.catalog, table.schema));
      row.Set("contype", CatalogValue(std::string(1, static_cast<char>(constraint.kind))));
      row.Set("condeferrable", constraint.deferrable).Set("condeferred", constraint.deferred);
      row.Set("convalidated", constraint.validated).Set("conrelid", table.oid);
      row.Set({"contypid", "conparentid", "coninhcount"}, "0").Set("conindid", constraint.index);
      row.Set("confrelid", constraint.referenced_table);
      row.Set("confupdtype", letter(constraint.on_update));
      row.Set("confdeltype", letter(constraint.on_delete));
      row.Set("confmatchtype", letter(constraint.match));
      row.Set("conislocal", true).Set("connoinherit", constraint.kind != ConstraintKind::kCheck);
      row.Set("conkey", ColumnNumbers(constraint.columns));
      row.Set("confkey", ColumnNumbers(constraint.referenced_columns));
      if (constraint.kind == ConstraintKind::kCheck)
        row.Set("conbin", CatalogValue(constraint.definition));
      sink(row.values());
    }
  });
}

void ScanSequence(const QuerySession& session, const VirtualRowSink& sink) {
  for (const auto& [oid, sequence] : session.catalog->sequences) {
    CatalogRow row("pg_sequence");
    row.Set("seqrelid", oid).Set("seqtypid", sequence.type).Set("seqstart", sequence.start);
    row.Set("seqincrement", sequence.increment).Set("seqmax", sequence.max);
    row.Set("seqmin", sequence.min).Set("seqcache", sequence.cache);
    row.Set("seqcycle", sequence.cycle);
    sink(row.values());
  }
}

// Which sequences columns own, and which indexes are constraints'.
void ScanDepend(const QuerySession& session, const VirtualRowSink& sink) {
  auto put_of = [&](Oid of, Oid object, Oid catalog, Oid referenced, int part, const char* type) {
    CatalogRow row("pg_depend");
    row.Set("classid", of).Set("objid", object).Set("objsubid", 0);
    row.Set("refclassid", catalog).Set("refobjid", referenced).Set("refobjsubid", part);
    row.Set("deptype", type);
    sink(row.values());
  };
  auto put = [&](Oid object, Oid catalog, Oid referenced, int part, const char* type) {
    put_of(kPgClass, object, catalog, referenced, part, type);
  };
  // What is Sluice's own is an extension's, to those who dump or list what users made.
  put_of(kPgNamespace, SchemaOid(*session.catalog, "sluice"), kPgExtension, kSluiceExtensionOid, 0,
         "e");
  for (const char* wrapper : {"postgres_fdw", "lines_fdw"})
    put_of(kPgForeignDataWrapper, ForeignDataWrapperOid(wrapper), kPgExtension, kSluiceExtensionOid,
           0, "e");
  for (const VirtualTable& view : AllVirtualTables())
    if (view.schema == "sluice") put(view.oid, kPgExtension, kSluiceExtensionOid, 0, "e");
  for (const auto& [oid, sequence] : session.catalog->sequences) {
    const Relation* table = session.catalog->FindRelation(sequence.owned_by);
    if (table == nullptr) continue;
    put(oid, kPgClass, table->oid, table->FindColumn(sequence.owned_column) + 1,
        sequence.identity ? "i" : "a");
  }
  ForEachTable(session, [&](const Relation& table) {
    for (const Constraint& constraint : table.constraints)
      if (constraint.index != kInvalidOid)
        put(constraint.index, kPgConstraint, constraint.oid, 0, "i");
    for (size_t i = 0; i < table.columns.size(); i++) {
      if (table.columns[i].default_sql.empty()) continue;
      Oid value = ColumnDefaultOid(table.oid, i + 1);
      put_of(kPgAttrdef, value, kPgClass, table.oid, static_cast<int>(i) + 1, "a");
      for (const auto& [oid, sequence] : session.catalog->sequences)
        if (table.columns[i].default_sql == NextvalOf(sequence))
          put_of(kPgAttrdef, value, kPgClass, oid, 0, "n");
    }
  });
  // Of a view itself, where Postgres has its rule.
  for (const auto& [oid, relation] : session.catalog->relations)
    for (Oid used : relation.view_uses)
      if (session.catalog->FindRelation(used) != nullptr) put(oid, kPgClass, used, 0, "n");
}

bool HasPart(const Catalog& catalog, Oid object, Oid* holder) {
  for (const auto& [oid, relation] : catalog.relations) {
    for (const Index& index : relation.indexes)
      if (index.oid == object) return *holder = kPgClass, true;
    for (const Constraint& constraint : relation.constraints)
      if (constraint.oid == object) return *holder = kPgConstraint, true;
  }
  return false;
}

}  // namespace

Oid CatalogOf(const Catalog& catalog, Oid object) {
  Oid holder = kInvalidOid;
  if (catalog.relations.contains(object) || catalog.sequences.contains(object)) return kPgClass;
  if (catalog.types.contains(object)) return kPgType;
  if (catalog.servers.contains(object)) return kPgServer;
  if (catalog.roles.contains(object)) return kPgAuthid;
  if (HasPart(catalog, object, &holder)) return holder;
  for (const auto& [name, schema] : catalog.schemas)
    if (schema.oid == object) return kPgNamespace;
  for (const auto& [name, oid] : catalog.extensions)
    if (oid == object) return kPgExtension;
  return kInvalidOid;
}

CatalogScan FindIndexScan(std::string_view table) {
  if (table == "pg_class") return ScanClass;
  if (table == "pg_attribute") return ScanAttribute;
  if (table == "pg_index") return ScanIndex;
  if (table == "pg_constraint") return ScanConstraint;
  if (table == "pg_sequence") return ScanSequence;
  if (table == "pg_depend") return ScanDepend;
  return nullptr;
}

}  // namespace sluice

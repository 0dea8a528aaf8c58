// Sequences: CREATE, ALTER and DROP SEQUENCE, and those of serial and identity columns. Their
// values are handed out here (catalog/sequence_values.h); the shards know nothing of them.
#include "catalog/privilege.h"
#include "postmaster/ddl_distributed.h"

namespace sluice {

namespace {

struct TypeRange {
  int64_t min, max;
};

TypeRange RangeOf(Oid type) {
  if (type == kInt2Oid) return {INT16_MIN, INT16_MAX};
  if (type == kInt4Oid) return {INT32_MIN, INT32_MAX};
  return {INT64_MIN, INT64_MAX};
}

int64_t NumberOf(const PgQuery__DefElem& option) {
  const RawNode* arg = option.arg;
  if (arg->node_case == PG_QUERY__NODE__NODE_INTEGER) return arg->integer->ival;
  std::string text = arg->node_case == PG_QUERY__NODE__NODE_FLOAT ? arg->float_->fval : "";
  char* end = nullptr;
  errno = 0;
  int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || text.empty() || *end != '\0')
    Throw(sqlstate::kNumericValueOutOfRange, "value \"{}\" is out of range for type bigint", text);
  return value;
}

[[noreturn]] void ThrowInvalid(std::string message) {
  throw QueryError(MakeError(sqlstate::kInvalidParameterValue, "{}", message));
}

// OWNED BY table.column or NONE.
void SetOwner(Ddl& ddl, const PgQuery__List& names, Sequence* sequence) {
  if (names.n_items == 1) {
    if (StringOf(names.items[0]) != "none")
      throw QueryError(MakeError(sqlstate::kSyntaxError, "invalid OWNED BY option")
                           .Hint("Specify OWNED BY table.column or OWNED BY NONE."));
    sequence->owned_by = kInvalidOid;
    sequence->owned_column.clear();
    return;
  }
  QualifiedName name = NameOfList(ddl, names.items, names.n_items - 1);
  const Relation* table = name.schema.empty()
                              ? ddl.catalog.FindRelation(ddl.context.search_path, name.name)
                              : ddl.catalog.FindRelation(name.schema, name.name);
  std::string column(StringOf(names.items[names.n_items - 1]));
  if (table == nullptr)
    Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name.name);
  if (table->FindColumn(column) < 0)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" of relation \"{}\" does not exist", column,
          table->name);
  if (table->schema != sequence->schema)
    Throw(sqlstate::kObjectNotInPrerequisiteState,
          "sequence must be in same schema as table it is linked to");
  sequence->owned_by = table->oid;
  sequence->owned_column = column;
}

const PgQuery__DefElem* Find(const std::map<std::string_view, const PgQuery__DefElem*>& options,
                             std::string_view name) {
  auto found = options.find(name);
  return found == options.end() ? nullptr : found->second;
}

// NO MINVALUE is an option without a value.
bool HasValue(const PgQuery__DefElem* option) {
  return option != nullptr && option->arg != nullptr;
}

void SetType(Ddl& ddl, const PgQuery__DefElem& option, bool is_new, Sequence* s) {
  Oid type = ResolveType(ddl, *option.arg->type_name, kInvalidOid).type;
  if (type != kInt2Oid && type != kInt4Oid && type != kInt8Oid)
    ThrowInvalid(s->identity ? "identity column type must be smallint, integer, or bigint"
                             : "sequence type must be smallint, integer, or bigint");
  // Bounds that were those of the old type become those of the new.
  TypeRange was = RangeOf(s->type), now = RangeOf(type);
  if (!is_new && s->max == was.max) s->max = now.max;
  if (!is_new && s->min == was.min) s->min = now.min;
  s->type = type;
}

void CheckBounds(const Sequence& s) {
  TypeRange range = RangeOf(s.type);
  if (s.max > range.max || s.max < range.min)
    ThrowInvalid(fmt::format("MAXVALUE ({}) is out of range for sequence data type {}", s.max,
                             FormatTypeName(s.type)));
  if (s.min > range.max || s.min < range.min)
    ThrowInvalid(fmt::format("MINVALUE ({}) is out of range for sequence data type {}", s.min,
                             FormatTypeName(s.type)));
  if (s.min >= s.max)
    ThrowInvalid(fmt::format("MINVALUE ({}) must be less than MAXVALUE ({})", s.min, s.max));
  if (s.start < s.min)
    ThrowInvalid(fmt::format("START value ({}) cannot be less than MINVALUE ({})", s.start, s.min));
  if (s.start > s.max)
    ThrowInvalid(
        fmt::format("START value ({}) cannot be greater than MAXVALUE ({})", s.start, s.max));
}

void RequireOwner(const Ddl& ddl, const Sequence& sequence) {
  if (!HasPrivilegesOf(ddl.catalog, CurrentRole(ddl), sequence.owner))
    Throw(sqlstate::kInsufficientPrivilege, "must be owner of sequence {}", sequence.name);
}

Sequence& GetSequence(Ddl& ddl, const PgQuery__RangeVar& name) {
  std::string schema(Text(name.schemaname));
  const Sequence* found = schema.empty()
                              ? ddl.catalog.FindSequence(ddl.context.search_path, name.relname)
                              : ddl.catalog.FindSequence(schema, name.relname);
  if (found == nullptr) {
    if (FindRelation(std::as_const(ddl), name) != nullptr)
      Throw(sqlstate::kWrongObjectType, "\"{}\" is not a sequence", name.relname);
    Throw(sqlstate::kUndefinedTable, "relation \"{}\" does not exist", name.relname);
  }
  RequireOwner(ddl, *found);
  return ddl.catalog.sequences.at(found->oid);
}

Sequence& AddSequence(Ddl& ddl, Sequence sequence) {
  sequence.oid = ddl.NewOid();
  sequence.storage = sequence.oid;
  sequence.owner = ddl.context.user;
  Oid oid = sequence.oid;
  return ddl.catalog.sequences.emplace(oid, std::move(sequence)).first->second;
}

// Defaults of columns that call nextval() of it.
std::vector<std::string> DependentDefaults(const Ddl& ddl, const Sequence& sequence) {
  std::vector<std::string> dependents;
  std::string call = NextvalOf(sequence);
  for (const auto& [oid, relation] : ddl.catalog.relations)
    for (const ColumnInfo& column : relation.columns)
      if (!relation.hidden && column.default_sql == call)
        dependents.push_back(fmt::format("default value for column {} of {}",
                                         QuoteIdentifier(column.name), Describe(ddl, relation)));
  return dependents;
}

void DropSequence(Ddl& ddl, const Sequence& sequence, bool cascade) {
  RequireOwner(ddl, sequence);
  std::string described = "sequence " + QuoteIdentifier(sequence.name);
  if (sequence.identity) {
    const Relation& table = ddl.catalog.relations.at(sequence.owned_by);
    throw QueryError(
        MakeError(sqlstate::kDependentObjectsStillExist,
                  "cannot drop {} because column {} of {} requires it", described,
                  QuoteIdentifier(sequence.owned_column), Describe(ddl, table))
            .Hint(fmt::format("You can drop column {} of {} instead.",
                              QuoteIdentifier(sequence.owned_column), Describe(ddl, table))));
  }
  std::vector<std::string> dependents = DependentDefaults(ddl, sequence);
  if (!dependents.empty() && !cascade) {
    std::string detail;
    for (const std::string& dependent : dependents)
      detail += (detail.empty() ? "" : "\n") + dependent + " depends on " + described;
    throw QueryError(MakeError(sqlstate::kDependentObjectsStillExist,
                               "cannot drop {} because other objects depend on it", described)
                         .Detail(detail)
                         .Hint("Use DROP ... CASCADE to drop the dependent objects too."));
  }
  for (const std::string& dependent : dependents)
    ddl.Notice(MakeError(sqlstate::kSuccess, "drop cascades to {}", dependent));
  std::string call = NextvalOf(sequence);
  for (auto& [oid, relation] : ddl.catalog.relations)
    for (ColumnInfo& column : relation.columns)
      if (column.default_sql == call) column.default_sql.clear();
  ddl.catalog.comments.erase(sequence.oid);
  ddl.catalog.sequences.erase(Oid{sequence.oid});
  ddl.changed = true;
}

}  // namespace

std::string NextvalOf(const Sequence& sequence) {
  std::string name = sequence.schema == "public" ? QuoteIdentifier(sequence.name)
                                                 : QuoteQualified(sequence.schema, sequence.name);
  return fmt::format("nextval({}::regclass)", QuoteLiteral(name));
}

void SetSequenceOptions(Ddl& ddl, RawNode* const* nodes, size_t count, bool is_new, Sequence* s) {
  std::map<std::string_view, const PgQuery__DefElem*> options;
  for (size_t i = 0; i < count; i++) {
    const PgQuery__DefElem& option = *nodes[i]->def_elem;
    if (!options.emplace(option.defname, &option).second)
      ddl.ThrowAt(MakeError(sqlstate::kSyntaxError, "conflicting or redundant options"),
                  option.location);
  }
  if (const auto* type = Find(options, "as")) SetType(ddl, *type, is_new, s);
  TypeRange range = RangeOf(s->type);
  if (const auto* increment = Find(options, "increment")) s->increment = NumberOf(*increment);
  if (s->increment == 0) ThrowInvalid("INCREMENT must not be zero");
  if (const auto* cycle = Find(options, "cycle")) s->cycle = cycle->arg->boolean->boolval;
  const auto* max = Find(options, "maxvalue");
  if (HasValue(max))
    s->max = NumberOf(*max);
  else if (is_new || max != nullptr)
    s->max = s->increment > 0 ? range.max : -1;
  const auto* min = Find(options, "minvalue");
  if (HasValue(min))
    s->min = NumberOf(*min);
  else if (is_new || min != nullptr)
    s->min = s->increment > 0 ? 1 : range.min;
  if (const auto* start = Find(options, "start"))
    s->start = NumberOf(*start);
  else if (is_new)
    s->start = s->increment > 0 ? s->min : s->max;
  CheckBounds(*s);
  if (const auto* cache = Find(options, "cache")) s->cache = NumberOf(*cache);
  if (s->cache <= 0) ThrowInvalid(fmt::format("CACHE ({}) must be greater than zero", s->cache));
  if (const auto* owned_by = Find(options, "owned_by")) {
    if (s->identity)
      throw QueryError(MakeError(sqlstate::kFeatureNotSupported,
                                 "cannot change ownership of identity sequence"));
    SetOwner(ddl, *owned_by->arg->list, s);
  }
  const auto* restart = Find(options, "restart");
  if (restart != nullptr) {
    s->restart = HasValue(restart) ? NumberOf(*restart) : s->start;
    if (s->restart < s->min)
      ThrowInvalid(
          fmt::format("RESTART value ({}) cannot be less than MINVALUE ({})", s->restart, s->min));
    if (s->restart > s->max)
      ThrowInvalid(fmt::format("RESTART value ({}) cannot be greater than MAXVALUE ({})",
                               s->restart, s->max));
    s->storage = ddl.NewOid();  // another file: undone with the transaction
  } else if (is_new) {
    s->restart = s->start;
  }
  ddl.changed = true;
}

Sequence& CreateColumnSequence(Ddl& ddl, const Relation& table, const std::string& column, Oid type,
                               RawNode* const* options, size_t count, bool identity) {
  Sequence sequence;
  sequence.schema = table.schema;
  sequence.name = ChooseObjectName(ddl, table.schema, table.name, column, "seq");
  sequence.type = type;
  sequence.identity = identity;
  // A dump names it.
  std::vector<RawNode*> others;
  for (size_t i = 0; i < count; i++) {
    const PgQuery__DefElem& option = *options[i]->def_elem;
    if (Text(option.defname) != "sequence_name") {
      others.push_back(options[i]);
      continue;
    }
    QualifiedName name = NameOfList(ddl, option.arg->list->items, option.arg->list->n_items);
    if (!name.schema.empty()) sequence.schema = name.schema;
    sequence.name = name.name;
    CheckNameFree(ddl, sequence.schema, sequence.name, false);
  }
  SetSequenceOptions(ddl, others.data(), others.size(), true, &sequence);
  sequence.owned_by = table.oid;
  sequence.owned_column = column;
  return AddSequence(ddl, std::move(sequence));
}

void CreateSequence(Ddl& ddl, const PgQuery__CreateSeqStmt& create) {
  if (Text(create.sequence->relpersistence) == "t") Refuse("temporary sequences are not supported");
  Sequence sequence;
  sequence.schema = CreationSchema(ddl, Text(create.sequence->schemaname));
  sequence.name = create.sequence->relname;
  if (!CheckNameFree(ddl, sequence.schema, sequence.name, create.if_not_exists)) return;
  SetSequenceOptions(ddl, create.options, create.n_options, true, &sequence);
  AddSequence(ddl, std::move(sequence));
}

void AlterSequence(Ddl& ddl, const PgQuery__AlterSeqStmt& alter) {
  std::string schema(Text(alter.sequence->schemaname));
  bool missing =
      (schema.empty() ? ddl.catalog.FindSequence(ddl.context.search_path, alter.sequence->relname)
                      : ddl.catalog.FindSequence(schema, alter.sequence->relname)) == nullptr;
  if (missing && alter.missing_ok)
    return ddl.Notice(MakeError(sqlstate::kSuccess, "relation \"{}\" does not exist, skipping",
                                alter.sequence->relname));
  SetSequenceOptions(ddl, alter.options, alter.n_options, false,
                     &GetSequence(ddl, *alter.sequence));
}

void RenameSequence(Ddl& ddl, const PgQuery__RenameStmt& rename) {
  Sequence& sequence = GetSequence(ddl, *rename.relation);
  CheckNameFree(ddl, sequence.schema, rename.newname, false);
  std::string before = NextvalOf(sequence);
  sequence.name = rename.newname;
  for (auto& [oid, relation] : ddl.catalog.relations)
    for (ColumnInfo& column : relation.columns)
      if (column.default_sql == before) column.default_sql = NextvalOf(sequence);
  ddl.changed = true;
}

void DropSequences(Ddl& ddl, const PgQuery__DropStmt& drop) {
  for (size_t i = 0; i < drop.n_objects; i++) {
    const PgQuery__List& list = *drop.objects[i]->list;
    QualifiedName name = NameOfList(ddl, list.items, list.n_items);
    const Sequence* found = name.schema.empty()
                                ? ddl.catalog.FindSequence(ddl.context.search_path, name.name)
                                : ddl.catalog.FindSequence(name.schema, name.name);
    if (found != nullptr)
      DropSequence(ddl, Sequence(*found), drop.behavior == PG_QUERY__DROP_BEHAVIOR__DROP_CASCADE);
    else if (drop.missing_ok)
      ddl.Notice(
          MakeError(sqlstate::kSuccess, "sequence \"{}\" does not exist, skipping", name.name));
    else
      Throw(sqlstate::kUndefinedTable, "sequence \"{}\" does not exist", name.name);
  }
}

void DropOwnedSequences(Ddl& ddl, Oid table, const std::string* column) {
  std::erase_if(ddl.catalog.sequences, [&](const auto& entry) {
    const Sequence& sequence = entry.second;
    return sequence.owned_by == table && (column == nullptr || sequence.owned_column == *column);
  });
}

void RestartOwnedSequences(Ddl& ddl, Oid table) {
  for (auto& [oid, sequence] : ddl.catalog.sequences) {
    if (sequence.owned_by != table) continue;
    sequence.storage = ddl.NewOid();
    sequence.restart = sequence.start;
  }
}

}  // namespace sluice

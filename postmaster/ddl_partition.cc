// Partition keys and bounds, and the links between parents and children.
#include "catalog/partition.h"
#include "postmaster/ddl_internal.h"
#include "types/codec.h"

namespace sluice {

namespace {

constexpr size_t kPartitionKeysMax = 32;

PartitionStrategy StrategyOf(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (lower == "hash") return PartitionStrategy::kHash;
  if (lower == "list") return PartitionStrategy::kList;
  if (lower == "range") return PartitionStrategy::kRange;
  Throw(sqlstate::kInvalidParameterValue, "unrecognized partitioning strategy \"{}\"", name);
}

const char* StrategyName(PartitionStrategy strategy) {
  switch (strategy) {
    case PartitionStrategy::kHash:
      return "hash";
    case PartitionStrategy::kList:
      return "list";
    default:
      return "range";
  }
}

void CheckImmutable(const Expr& expr) {
  if (expr.kind == ExprKind::kAggregate)
    Throw(sqlstate::kGroupingError,
          "aggregate functions are not allowed in partition key expressions");
  if (expr.kind == ExprKind::kSubquery)
    Throw(sqlstate::kFeatureNotSupported, "cannot use subquery in partition key expression");
  const ProcInfo* function = expr.function == kInvalidOid ? nullptr : FindProc(expr.function);
  // Casts through text depend on settings more often than not; what each does is not recorded.
  bool stable = expr.kind == ExprKind::kSqlValue || expr.kind == ExprKind::kCoerceViaIo ||
                (function != nullptr && function->volatility != 'i');
  if (stable)
    Throw(sqlstate::kInvalidObjectDefinition,
          "functions in partition key expression must be marked IMMUTABLE");
  for (const Expr* arg : expr.args) CheckImmutable(*arg);
}

// A literal's text; nullopt: NULL. Anything that would have to be computed is refused.
std::optional<std::string> LiteralText(Ddl& ddl, const RawNode* node) {
  if (node->node_case == PG_QUERY__NODE__NODE_TYPE_CAST)
    return LiteralText(ddl, node->type_cast->arg);
  if (node->node_case != PG_QUERY__NODE__NODE_A_CONST)
    Refuse("a partition bound that is not a literal is not supported: {}", DeparseExpression(node));
  const PgQuery__AConst& constant = *node->a_const;
  if (constant.isnull) return std::nullopt;
  switch (constant.val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL:
      return std::to_string(constant.ival->ival);
    case PG_QUERY__A__CONST__VAL_FVAL:
      return constant.fval->fval;
    case PG_QUERY__A__CONST__VAL_BOOLVAL:
      return constant.boolval->boolval ? "true" : "false";
    case PG_QUERY__A__CONST__VAL_SVAL:
      return constant.sval->sval;
    default:
      Refuse("a partition bound that is a bit string is not supported");
  }
}

int LocationOf(const RawNode* node) {
  switch (node->node_case) {
    case PG_QUERY__NODE__NODE_A_CONST:
      return node->a_const->location;
    case PG_QUERY__NODE__NODE_TYPE_CAST:
      return LocationOf(node->type_cast->arg);
    case PG_QUERY__NODE__NODE_COLUMN_REF:
      return node->column_ref->location;
    default:
      return -1;
  }
}

std::string BoundValue(Ddl& ddl, Oid type, std::string_view text, const RawNode* node) {
  // 'x'::date under a key of another type would have to be converted: only the key's own type is
  // read.
  if (node->node_case == PG_QUERY__NODE__NODE_TYPE_CAST) {
    TypeAndMod cast = ResolveType(ddl, *node->type_cast->type_name, kInvalidOid);
    if (cast.type != type)
      Refuse("a partition bound of type {} for a key of type {} is not supported",
             FormatTypeName(cast.type), FormatTypeName(type));
  }
  try {
    return CanonicalValue(ddl, type, text);
  } catch (QueryError& failure) {
    ddl.ThrowAt(failure.error, LocationOf(node));
  }
}

std::vector<PartitionBound::RangeDatum> RangeBound(Ddl& ddl, const Relation& parent,
                                                   const char* side, RawNode* const* nodes,
                                                   size_t count) {
  if (count != parent.key.types.size())
    Throw(sqlstate::kInvalidTableDefinition,
          "{} must specify exactly one value per partitioning column", side);
  std::vector<PartitionBound::RangeDatum> bound;
  for (size_t i = 0; i < count; i++) {
    PartitionBound::RangeDatum datum;
    int before = i == 0 ? 0 : bound[i - 1].infinite;
    if (nodes[i]->node_case == PG_QUERY__NODE__NODE_COLUMN_REF) {  // MINVALUE, MAXVALUE
      const PgQuery__ColumnRef& word = *nodes[i]->column_ref;
      std::string_view name = word.n_fields == 1 ? StringOf(word.fields[0]) : "";
      if (name != "minvalue" && name != "maxvalue")
        ddl.ThrowAt(MakeError(sqlstate::kUndefinedColumn,
                              "cannot use column reference in partition bound expression"),
                    word.location);
      datum.infinite = name == "minvalue" ? -1 : 1;
    } else {
      std::optional<std::string> text = LiteralText(ddl, nodes[i]);
      if (!text) Throw(sqlstate::kInvalidObjectDefinition, "cannot specify NULL in range bound");
      datum.value = BoundValue(ddl, parent.key.types[i], *text, nodes[i]);
    }
    if (before != 0 && datum.infinite != before)
      ddl.ThrowAt(
          MakeError(sqlstate::kDatatypeMismatch, "every bound following {0} must also be {0}",
                    before < 0 ? "MINVALUE" : "MAXVALUE"),
          LocationOf(nodes[i]));
    bound.push_back(std::move(datum));
  }
  return bound;
}

void ReadHashBound(const PgQuery__PartitionBoundSpec& spec, PartitionBound* bound) {
  if (spec.modulus <= 0)
    Throw(sqlstate::kInvalidTableDefinition,
          "modulus for hash partition must be an integer value greater than zero");
  if (spec.remainder < 0)
    Throw(sqlstate::kInvalidTableDefinition,
          "remainder for hash partition must be an integer value greater than or equal to zero");
  if (spec.remainder >= spec.modulus)
    Throw(sqlstate::kInvalidTableDefinition,
          "remainder for hash partition must be less than modulus");
  bound->modulus = spec.modulus;
  bound->remainder = spec.remainder;
}

void AddListValue(std::optional<std::string> value, PartitionBound* bound) {
  // Postgres drops repeated values too.
  if (std::find(bound->list.begin(), bound->list.end(), value) == bound->list.end())
    bound->list.push_back(std::move(value));
}

void RemoveChild(Relation* parent, Oid child) {
  std::erase(parent->children, child);
}

}  // namespace

std::string CanonicalValue(Ddl& ddl, Oid type, std::string_view text) {
  const UserType* user_type = ddl.catalog.FindUserType(type);
  if (user_type != nullptr && user_type->info.kind == 'e') {
    const auto& labels = user_type->enum_labels;
    if (std::find(labels.begin(), labels.end(), text) == labels.end())
      Throw(sqlstate::kInvalidTextRepresentation, "invalid input value for enum {}: \"{}\"",
            user_type->name, text);
    return std::string(text);
  }
  if (!HasBinaryCodec(type)) return std::string(text);
  // Written in the session's formats, kept in those of the defaults.
  std::string_view binary = ParseText(type, -1, text, *ddl.context.settings, &ddl.arena);
  Column column = MakeConstantColumn(type, binary, false, &ddl.arena);
  std::string canonical;
  AppendText(column, 0, SessionSettings(), &canonical);
  return canonical;
}

void SetPartitionExpressions(Ddl& ddl, PartitionStrategy strategy,
                             std::vector<std::string> expressions, Relation* parent) {
  parent->kind = RelationKind::kPartitioned;
  parent->key = {};
  parent->key.strategy = strategy;
  for (std::string& sql : expressions) {
    std::vector<Oid> params;
    AnalyzeContext analyze = ddl.MakeAnalyzeContext(&params);
    const Expr* expr;
    try {
      expr = AnalyzeExpression(sql, parent, analyze);
    } catch (QueryError& failure) {
      failure.error.position = 0;  // it would be one in `sql`, not in the client's text
      throw;
    }
    CheckImmutable(*expr);
    parent->key.types.push_back(expr->type);
    parent->key.collations.push_back(expr->collation);
    parent->key.expressions.push_back(std::move(sql));
  }
}

void SetPartitionKey(Ddl& ddl, const PgQuery__PartitionSpec& spec, Relation* parent) {
  PartitionStrategy strategy = StrategyOf(spec.strategy);
  if (strategy == PartitionStrategy::kList && spec.n_part_params > 1)
    Throw(sqlstate::kInvalidObjectDefinition,
          "cannot use \"list\" partition strategy with more than one column");
  if (spec.n_part_params > kPartitionKeysMax)
    Throw(sqlstate::kInvalidObjectDefinition, "cannot partition using more than {} columns",
          kPartitionKeysMax);
  std::vector<std::string> expressions;
  for (size_t i = 0; i < spec.n_part_params; i++) {
    const PgQuery__PartitionElem& element = *spec.part_params[i]->partition_elem;
    if (element.n_opclass > 0) Refuse("operator classes of partition keys are not supported");
    if (element.n_collation > 0) Refuse("COLLATE of partition keys is not supported");
    std::string_view name = Text(element.name);
    if (name.empty()) {
      expressions.push_back("(" + DeparseExpression(element.expr) + ")");
      continue;
    }
    if (parent->FindColumn(name) < 0)
      ddl.ThrowAt(MakeError(sqlstate::kUndefinedColumn,
                            "column \"{}\" named in partition key does not exist", name),
                  element.location);
    expressions.push_back(QuoteIdentifier(name));
  }
  SetPartitionExpressions(ddl, strategy, std::move(expressions), parent);
}

PartitionBound MakeBound(Ddl& ddl, const Relation& parent,
                         const PgQuery__PartitionBoundSpec& spec) {
  PartitionBound bound;
  PartitionStrategy strategy = parent.key.strategy;
  if (spec.is_default) {
    if (strategy == PartitionStrategy::kHash)
      Throw(sqlstate::kInvalidTableDefinition,
            "a hash-partitioned table may not have a default partition");
    bound.is_default = true;
    return bound;
  }
  if (StrategyName(strategy)[0] != Text(spec.strategy)[0])
    ddl.ThrowAt(MakeError(sqlstate::kInvalidTableDefinition,
                          "invalid bound specification for a {} partition", StrategyName(strategy)),
                spec.location);
  if (strategy == PartitionStrategy::kHash) {
    ReadHashBound(spec, &bound);
  } else if (strategy == PartitionStrategy::kList) {
    for (size_t i = 0; i < spec.n_listdatums; i++) {
      std::optional<std::string> text = LiteralText(ddl, spec.listdatums[i]);
      if (text) text = BoundValue(ddl, parent.key.types[0], *text, spec.listdatums[i]);
      AddListValue(std::move(text), &bound);
    }
    // In a fixed order: tables that are spread alike have equal bounds.
    std::sort(bound.list.begin(), bound.list.end());
  } else {
    bound.from = RangeBound(ddl, parent, "FROM", spec.lowerdatums, spec.n_lowerdatums);
    bound.to = RangeBound(ddl, parent, "TO", spec.upperdatums, spec.n_upperdatums);
  }
  return bound;
}

int BoundLocation(const PgQuery__PartitionBoundSpec& spec) {
  if (spec.n_listdatums > 0) return LocationOf(spec.listdatums[0]);
  if (spec.n_lowerdatums > 0) return LocationOf(spec.lowerdatums[0]);
  return spec.location;
}

void LinkPartition(Ddl& ddl, Relation* parent, Relation* child, PartitionBound bound,
                   int location) {
  try {
    CheckNewBound(ddl.catalog, *parent, child->name, bound);
  } catch (QueryError& failure) {
    // Postgres points at an overlap, not at a modulus that does not fit.
    bool modulus =
        parent->key.strategy == PartitionStrategy::kHash && !failure.error.detail.empty();
    ddl.ThrowAt(failure.error, modulus ? -1 : location);
  }
  child->bound = std::move(bound);
  LinkChild(ddl, parent, child);
}

void LinkChild(Ddl& ddl, Relation* parent, Relation* child) {
  child->parent = parent->oid;
  parent->children.push_back(child->oid);
  ddl.changed = true;
}

void Unlink(Ddl& ddl, Relation* child) {
  RemoveChild(&ddl.GetRelation(child->parent), child->oid);
  child->parent = kInvalidOid;
  child->bound = {};
  ddl.changed = true;
}

namespace {

// Parent and child have the same columns, by name; each in an order of its own.
void CheckChildColumns(const Relation& parent, const Relation& child, bool partition) {
  for (const ColumnInfo& column : child.columns)
    if (partition && parent.FindColumn(column.name) < 0)
      throw QueryError(
          MakeError(sqlstate::kDatatypeMismatch,
                    "table \"{}\" contains column \"{}\" not found in parent \"{}\"", child.name,
                    column.name, parent.name)
              .Detail("The new partition may contain only the columns present in parent."));
  for (const ColumnInfo& column : parent.columns) {
    int index = child.FindColumn(column.name);
    if (index < 0)
      Throw(sqlstate::kDatatypeMismatch, "child table is missing column \"{}\"", column.name);
    const ColumnInfo& own = child.columns[static_cast<size_t>(index)];
    if (own.type != column.type || own.typmod != column.typmod)
      Throw(sqlstate::kDatatypeMismatch, "child table \"{}\" has different type for column \"{}\"",
            child.name, column.name);
    if (own.collation != column.collation)
      Throw(sqlstate::kCollationMismatch,
            "child table \"{}\" has different collation for column \"{}\"", child.name,
            column.name);
  }
}

// Whether `ancestor` is `relation` or above it.
bool IsAbove(const Ddl& ddl, Oid ancestor, Oid relation) {
  for (; relation != kInvalidOid; relation = ddl.catalog.relations.at(relation).parent)
    if (relation == ancestor) return true;
  return false;
}

}  // namespace

void AttachPartition(Ddl& ddl, Relation* parent, const PgQuery__PartitionCmd& command) {
  Relation& child = GetRelation(ddl, *command.name);
  if (parent->kind != RelationKind::kPartitioned)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a partitioned table", parent->name);
  if (child.kind == RelationKind::kView)
    Throw(sqlstate::kWrongObjectType,
          "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"", child.name);
  if (child.kind == RelationKind::kInheritsParent)
    Refuse("a partition that holds rows here is not supported: partitions are foreign tables");
  if (child.parent != kInvalidOid)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is already a partition", child.name);
  if (IsAbove(ddl, child.oid, parent->oid))
    throw QueryError(
        MakeError(sqlstate::kDuplicateTable, "circular inheritance not allowed")
            .Detail(fmt::format("\"{}\" is already a child of \"{}\".", parent->name, child.name)));
  CheckChildColumns(*parent, child, true);
  PartitionBound bound = MakeBound(ddl, *parent, *command.bound);
  LinkPartition(ddl, parent, &child, std::move(bound), BoundLocation(*command.bound));
}

void DetachPartition(Ddl& ddl, Relation* parent, const PgQuery__PartitionCmd& command) {
  Relation& child = GetRelation(ddl, *command.name);
  if (parent->kind != RelationKind::kPartitioned)
    Throw(sqlstate::kWrongObjectType, "\"{}\" is not a partitioned table", parent->name);
  if (child.parent != parent->oid)
    Throw(sqlstate::kUndefinedTable, "relation \"{}\" is not a partition of relation \"{}\"",
          child.name, parent->name);
  Unlink(ddl, &child);
}

void CheckParent(Ddl& ddl, const Relation& parent) {
  if (parent.is_distributed())
    throw QueryError(MakeError(sqlstate::kFeatureNotSupported,
                               "{} lies on the servers and has no children", Describe(ddl, parent))
                         .Hint("WITH (distribution = none), or the setting "
                               "sluice.default_distribution, makes a parent of foreign tables."));
}

void CheckInheritable(Ddl& ddl, const Relation& parent, const Relation& child) {
  CheckParent(ddl, parent);
  if (parent.kind == RelationKind::kForeignTable)
    Refuse("a foreign table as a parent is not supported");
  if (parent.kind != RelationKind::kInheritsParent)
    Throw(sqlstate::kWrongObjectType, "cannot inherit from {} \"{}\"",
          parent.kind == RelationKind::kView ? "view" : "partitioned table", parent.name);
  if (child.parent == parent.oid)
    Throw(sqlstate::kDuplicateTable, "relation \"{}\" would be inherited from more than once",
          parent.name);
  if (child.parent != kInvalidOid) Refuse("a table with several parents is not supported");
  if (IsAbove(ddl, child.oid, parent.oid))
    throw QueryError(
        MakeError(sqlstate::kDuplicateTable, "circular inheritance not allowed")
            .Detail(fmt::format("\"{}\" is already a child of \"{}\".", parent.name, child.name)));
  CheckChildColumns(parent, child, false);
}

}  // namespace sluice

#include "postmaster/ddl_shard_sql.h"

#include <cstdlib>
#include <cstring>

#include "postmaster/raw_walk.h"

namespace sluice {

void SetText(char** field, std::string_view text) {
  if (*field != nullptr && *field != protobuf_c_empty_string) std::free(*field);
  *field = strndup(text.data(), text.size());
}

void QualifyNames(const Ddl& ddl, RawNode* tree) {
  WalkRaw(&tree->base, [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__range_var__descriptor) return;
    auto* name = reinterpret_cast<PgQuery__RangeVar*>(message);
    const Relation* relation = FindRelation(ddl, *name);
    if (relation != nullptr && Text(name->schemaname).empty())
      SetText(&name->schemaname, relation->schema);
  });
}

bool UsesSequence(const RawNode* expression) {
  bool uses = false;
  WalkRaw(const_cast<ProtobufCMessage*>(&expression->base), [&](ProtobufCMessage* message) {
    if (message->descriptor != &pg_query__func_call__descriptor) return;
    const auto& call = *reinterpret_cast<PgQuery__FuncCall*>(message);
    std::string_view name = StringOf(call.funcname[call.n_funcname - 1]);
    uses |= name == "nextval" || name == "currval" || name == "lastval" || name == "setval";
  });
  return uses;
}

namespace {

// int2, int4 or int8 for smallserial, serial or bigserial.
const char* SerialType(const PgQuery__TypeName& type) {
  if (type.n_names != 1 || type.n_array_bounds > 0) return nullptr;
  std::string_view name = StringOf(type.names[0]);
  if (name == "smallserial" || name == "serial2") return "int2";
  if (name == "serial" || name == "serial4") return "int4";
  if (name == "bigserial" || name == "serial8") return "int8";
  return nullptr;
}

void AppendNotNull(PgQuery__ColumnDef* def) {
  auto* constraint = static_cast<PgQuery__Constraint*>(std::malloc(sizeof(PgQuery__Constraint)));
  pg_query__constraint__init(constraint);
  constraint->contype = PG_QUERY__CONSTR_TYPE__CONSTR_NOTNULL;
  auto* node = static_cast<RawNode*>(std::malloc(sizeof(RawNode)));
  pg_query__node__init(node);
  node->node_case = PG_QUERY__NODE__NODE_CONSTRAINT;
  node->constraint = constraint;
  def->constraints = static_cast<RawNode**>(
      std::realloc(def->constraints, (def->n_constraints + 1) * sizeof(RawNode*)));
  def->constraints[def->n_constraints++] = node;
}

Oid IntegerType(Ddl& ddl, const PgQuery__ColumnDef& def) {
  Oid type = ResolveType(ddl, *def.type_name, kInvalidOid).type;
  if (type != kInt2Oid && type != kInt4Oid && type != kInt8Oid)
    Throw(sqlstate::kInvalidParameterValue,
          "identity column type must be smallint, integer, or bigint");
  return type;
}

}  // namespace

std::optional<SequenceColumn> TakeSequence(Ddl& ddl, std::string_view table,
                                           PgQuery__ColumnDef* def, std::string* default_sql) {
  std::optional<SequenceColumn> found;
  if (def->type_name != nullptr) {
    if (const char* type = SerialType(*def->type_name)) {
      SetText(&def->type_name->names[0]->string->sval, type);
      found.emplace();
      found->column = def->colname;
      found->type = ResolveType(ddl, *def->type_name, kInvalidOid).type;
    }
  }
  for (size_t i = 0; i < def->n_constraints; i++) {
    PgQuery__Constraint& constraint = *def->constraints[i]->constraint;
    if (constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_IDENTITY) {
      if (found)
        ddl.ThrowAt(
            MakeError(sqlstate::kSyntaxError,
                      "both default and identity specified for column \"{}\" of table \"{}\"",
                      def->colname, table),
            constraint.location);
      found.emplace();
      found->column = def->colname;
      found->identity = Text(constraint.generated_when) == "a" ? 'a' : 'd';
      found->type = IntegerType(ddl, *def);
      found->definition = CopyNode(def->constraints[i]);
    }
    if (constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_DEFAULT &&
        UsesSequence(constraint.raw_expr))
      *default_sql = DeparseExpression(constraint.raw_expr);
  }
  RemoveNodes(def->constraints, &def->n_constraints, [&](const RawNode& node) {
    const PgQuery__Constraint& constraint = *node.constraint;
    return constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_IDENTITY ||
           (constraint.contype == PG_QUERY__CONSTR_TYPE__CONSTR_DEFAULT &&
            UsesSequence(constraint.raw_expr));
  });
  if (found) AppendNotNull(def);
  return found;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

}  // namespace sluice

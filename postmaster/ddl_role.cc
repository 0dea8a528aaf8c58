// CREATE, ALTER and DROP ROLE; GRANT and REVOKE.
#include <algorithm>

#include "catalog/privilege.h"
#include "postmaster/ddl_internal.h"
#include "types/codec.h"
#include "wire/scram.h"

namespace sluice {
namespace {

constexpr std::string_view kDenied = "permission denied";

Role& GetRole(Ddl& ddl, std::string_view name) {
  const Role* role = ddl.catalog.FindRole(name);
  if (role == nullptr) Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", name);
  return ddl.catalog.roles.at(role->oid);
}

// Roles that may make roles may change those that are no superusers.
void RequireMayManage(const Ddl& ddl, const Role* changed, std::string_view what) {
  const Role& self = CurrentRole(ddl);
  if (self.superuser) return;
  if (changed != nullptr && changed->superuser)
    throw QueryError(MakeError(sqlstate::kInsufficientPrivilege,
                               "must be superuser to {} superusers",
                               what == "create" ? "create" : "alter"));
  if (!self.create_role) Throw(sqlstate::kInsufficientPrivilege, "{} to {} role", kDenied, what);
}

bool BoolOf(const PgQuery__DefElem& option) {
  const RawNode* arg = option.arg;
  if (arg == nullptr) return true;
  if (arg->node_case == PG_QUERY__NODE__NODE_INTEGER) return arg->integer->ival != 0;
  if (arg->node_case == PG_QUERY__NODE__NODE_BOOLEAN) return arg->boolean->boolval;
  return StringOf(arg) == "true";
}

int IntOf(const PgQuery__DefElem& option) {
  return option.arg != nullptr && option.arg->node_case == PG_QUERY__NODE__NODE_INTEGER
             ? option.arg->integer->ival
             : 0;
}

// A verifier as it is; of a password its verifier; the password itself is kept nowhere.
std::string VerifierOf(Ddl& ddl, const RawNode* password) {
  if (password == nullptr) return "";
  std::string_view text = StringOf(password);
  if (text.empty()) {
    ddl.Notice(
        MakeError(sqlstate::kSuccess, "empty string is not a valid password, clearing password"));
    return "";
  }
  if (ParseScramVerifier(text)) return std::string(text);
  if (text.starts_with("md5") && text.size() == 35)
    Refuse("MD5 password hashes are not supported; give the password or a SCRAM-SHA-256 verifier");
  return FormatScramVerifier(MakeScramVerifier(text));
}

// "infinity" and NULL: for ever.
std::string ValidUntil(Ddl& ddl, const RawNode* value) {
  if (value == nullptr) return "";
  std::string_view text = StringOf(value);
  ParseText(kTimestamptzOid, -1, text, *ddl.context.settings, &ddl.arena);  // or its error
  return text == "infinity" ? "" : CanonicalValue(ddl, kTimestamptzOid, text);
}

void AddMember(Ddl& ddl, Role& group, Role& member, bool admin) {
  if (IsMemberOf(ddl.catalog, Role{.oid = group.oid, .member_of = group.member_of}, member.oid))
    Throw(MakeSqlState("0LP01"), "role \"{}\" is a member of role \"{}\"", group.name, member.name);
  for (Role::Membership& membership : member.member_of) {
    if (membership.role != group.oid) continue;
    if (membership.admin_option || !admin)
      ddl.Notice(MakeError(sqlstate::kSuccess, "role \"{}\" is already a member of role \"{}\"",
                           member.name, group.name));
    membership.admin_option |= admin;
    return;
  }
  member.member_of.push_back({group.oid, admin, ddl.context.user});
}

void ForEachRole(Ddl& ddl, const RawNode* list, const std::function<void(Role&)>& each) {
  for (size_t i = 0; i < list->list->n_items; i++)
    each(GetRole(ddl, RoleName(ddl, *list->list->items[i]->role_spec)));
}

// Options that both statements have; false: none of them.
bool ApplyOption(Ddl& ddl, const PgQuery__DefElem& option, Role* role) {
  std::string_view name = option.defname;
  if (name == "superuser")
    role->superuser = BoolOf(option);
  else if (name == "canlogin")
    role->login = BoolOf(option);
  else if (name == "createdb")
    role->create_database = BoolOf(option);
  else if (name == "createrole")
    role->create_role = BoolOf(option);
  else if (name == "inherit")
    role->inherit = BoolOf(option);
  else if (name == "connectionlimit")
    role->connection_limit = IntOf(option);
  else if (name == "password")
    role->password_verifier = VerifierOf(ddl, option.arg);
  else if (name == "validUntil")
    role->valid_until = ValidUntil(ddl, option.arg);
  else if (name == "isreplication" || name == "bypassrls") {
    if (BoolOf(option))
      Refuse("the role attribute {} is not supported",
             name == "bypassrls" ? "BYPASSRLS" : "REPLICATION");
  } else {
    return false;
  }
  return true;
}

void RequireOnlySuperusersMake(const Ddl& ddl, const Role& role, bool was_superuser) {
  if (role.superuser != was_superuser && !CurrentRole(ddl).superuser)
    Throw(sqlstate::kInsufficientPrivilege, "must be superuser to {}",
          was_superuser ? "alter superuser roles or change superuser attribute"
                        : "create superusers");
}

// What of the role's is left, for DROP ROLE's message.
std::vector<std::string> DependentsOf(const Ddl& ddl, const Role& role) {
  std::vector<std::string> found;
  auto privileges = [&](const Acl& acl, const std::string& object) {
    for (const AclItem& item : acl.items)
      if (item.grantee == role.name || item.grantor == role.name) {
        found.push_back("privileges for " + object);
        return;
      }
  };
  for (const auto& [oid, relation] : ddl.catalog.relations) {
    if (relation.hidden) continue;
    if (relation.owner == role.name) found.push_back("owner of " + Describe(ddl, relation));
    privileges(relation.acl, Describe(ddl, relation));
  }
  for (const auto& [oid, sequence] : ddl.catalog.sequences) {
    if (sequence.owner == role.name) found.push_back("owner of sequence " + sequence.name);
    privileges(sequence.acl, "sequence " + sequence.name);
  }
  for (const auto& [name, schema] : ddl.catalog.schemas) {
    if (schema.owner == role.name) found.push_back("owner of schema " + name);
    privileges(schema.acl, "schema " + name);
  }
  for (const auto& [oid, server] : ddl.catalog.servers)
    if (server.owner == role.name) found.push_back("owner of server " + server.name);
  return found;
}

// --- GRANT and REVOKE on objects

struct GrantTarget {
  EffectiveAcl before;
  Acl* acl;
  std::string kind, name;
};

GrantTarget TargetOf(Relation& relation) {
  return {AclOf(relation), &relation.acl, relation.kind == RelationKind::kView ? "view" : "table",
          relation.name};
}
GrantTarget TargetOf(Sequence& sequence) {
  return {AclOf(sequence), &sequence.acl, "sequence", sequence.name};
}
GrantTarget TargetOf(Schema& schema, const std::string& name) {
  return {AclOf(schema, name), &schema.acl, "schema", name};
}

Schema& GetSchema(Ddl& ddl, std::string_view name) {
  auto found = ddl.catalog.schemas.find(std::string(name));
  if (found == ddl.catalog.schemas.end())
    Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", name);
  return found->second;
}

void AddNamedRelation(Ddl& ddl, const PgQuery__RangeVar& name, bool sequences,
                      std::vector<GrantTarget>* targets) {
  std::string_view schema = Text(name.schemaname);
  const Sequence* sequence = schema.empty()
                                 ? ddl.catalog.FindSequence(ddl.context.search_path, name.relname)
                                 : ddl.catalog.FindSequence(schema, name.relname);
  if (sequence != nullptr) {
    targets->push_back(TargetOf(ddl.catalog.sequences.at(sequence->oid)));
    return;
  }
  Relation& relation = GetRelation(ddl, name);
  if (sequences) Throw(sqlstate::kWrongObjectType, "\"{}\" is not a sequence", relation.name);
  targets->push_back(TargetOf(relation));
}

void AddAllInSchema(Ddl& ddl, std::string_view schema, bool sequences,
                    std::vector<GrantTarget>* targets) {
  GetSchema(ddl, schema);
  if (sequences) {
    for (auto& [oid, sequence] : ddl.catalog.sequences)
      if (sequence.schema == schema) targets->push_back(TargetOf(sequence));
    return;
  }
  for (auto& [oid, relation] : ddl.catalog.relations)
    if (relation.schema == schema && !relation.hidden) targets->push_back(TargetOf(relation));
}

// nullopt: a kind of object whose privileges are not kept.
std::optional<std::vector<GrantTarget>> TargetsOf(Ddl& ddl, const PgQuery__GrantStmt& grant) {
  bool sequences = grant.objtype == PG_QUERY__OBJECT_TYPE__OBJECT_SEQUENCE;
  bool schemas = grant.objtype == PG_QUERY__OBJECT_TYPE__OBJECT_SCHEMA;
  if (!sequences && !schemas && grant.objtype != PG_QUERY__OBJECT_TYPE__OBJECT_TABLE)
    return std::nullopt;
  bool all = grant.targtype == PG_QUERY__GRANT_TARGET_TYPE__ACL_TARGET_ALL_IN_SCHEMA;
  std::vector<GrantTarget> targets;
  for (size_t i = 0; i < grant.n_objects; i++) {
    const RawNode* object = grant.objects[i];
    if (all)
      AddAllInSchema(ddl, StringOf(object), sequences, &targets);
    else if (schemas)
      targets.push_back(TargetOf(GetSchema(ddl, StringOf(object)), std::string(StringOf(object))));
    else
      AddNamedRelation(ddl, *object->range_var, sequences, &targets);
  }
  return targets;
}

std::string PrivilegesOf(const PgQuery__GrantStmt& grant, const GrantTarget& target) {
  if (grant.n_privileges == 0) return std::string(target.before.all);
  std::string letters;
  for (size_t i = 0; i < grant.n_privileges; i++) {
    const PgQuery__AccessPriv& privilege = *grant.privileges[i]->access_priv;
    if (privilege.n_cols > 0) Refuse("column privileges are not supported");
    char letter = PrivilegeLetter(privilege.priv_name);
    if (letter == '\0' || target.before.all.find(letter) == target.before.all.npos) {
      std::string upper(privilege.priv_name);
      std::transform(upper.begin(), upper.end(), upper.begin(), toupper);
      Throw(MakeSqlState("0LP01"), "invalid privilege type {} for {}", upper,
            target.kind == "view" || target.kind == "table" ? "relation" : target.kind);
    }
    letters.push_back(letter);
  }
  return letters;
}

// The grantor counts as the owner where he may act for him, else he needs the grant option.
std::string GrantorOf(const Ddl& ddl, const GrantTarget& target, std::string* letters) {
  const Role& self = CurrentRole(ddl);
  if (HasPrivilegesOf(ddl.catalog, self, target.before.owner))
    return std::string(target.before.owner);
  std::string allowed;
  for (char letter : *letters)
    for (const AclItem& item : target.before.own.items)
      if (item.grant_options.find(letter) != std::string::npos && !item.grantee.empty() &&
          HasPrivilegesOf(ddl.catalog, self, item.grantee)) {
        allowed.push_back(letter);
        break;
      }
  if (allowed.empty())
    Throw(sqlstate::kInsufficientPrivilege, "permission denied for {} {}", target.kind,
          target.name);
  *letters = allowed;
  return self.name;
}

void GrantOn(Ddl& ddl, const PgQuery__GrantStmt& grant, const GrantTarget& target) {
  std::string letters = PrivilegesOf(grant, target);
  std::string grantor = GrantorOf(ddl, target, &letters);
  for (size_t i = 0; i < grant.n_grantees; i++) {
    const PgQuery__RoleSpec& spec = *grant.grantees[i]->role_spec;
    bool everyone = spec.roletype == PG_QUERY__ROLE_SPEC_TYPE__ROLESPEC_PUBLIC;
    std::string grantee = everyone ? "" : GetRole(ddl, RoleName(ddl, spec)).name;
    if (everyone && grant.grant_option && grant.is_grant)
      Throw(MakeSqlState("0LP01"), "grant options can only be granted to roles");
    if (grant.is_grant)
      GrantPrivileges(target.before, grantee, letters, grant.grant_option, grantor, target.acl);
    else
      RevokePrivileges(target.before, grantee, letters, grant.grant_option, target.acl);
  }
}

}  // namespace

const Role& CurrentRole(const Ddl& ddl) {
  const Role* role = ddl.catalog.FindRole(ddl.context.user);
  if (role == nullptr)
    Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", ddl.context.user);
  return *role;
}

void RequireOwner(const Ddl& ddl, const Relation& relation) {
  RequireOwner(ddl.catalog, CurrentRole(ddl), relation);
}

void RequireSchemaOwner(const Ddl& ddl, std::string_view name) {
  auto schema = ddl.catalog.schemas.find(std::string(name));
  if (schema != ddl.catalog.schemas.end() &&
      !HasPrivilegesOf(ddl.catalog, CurrentRole(ddl), schema->second.owner))
    Throw(sqlstate::kInsufficientPrivilege, "must be owner of schema {}", name);
}

void RequireSuperuser(const Ddl& ddl, std::string_view what) {
  if (!CurrentRole(ddl).superuser)
    throw QueryError(
        MakeError(sqlstate::kInsufficientPrivilege, "permission denied to {}", what)
            .Hint("Must be superuser: servers, user mappings and what is read from them decide "
                  "who Sluice is on the shards."));
}

void CreateRole(Ddl& ddl, const PgQuery__CreateRoleStmt& create) {
  std::string name(create.role);
  Role role;
  role.name = name;
  role.login = create.stmt_type == PG_QUERY__ROLE_STMT_TYPE__ROLESTMT_USER;
  std::vector<const PgQuery__DefElem*> memberships;
  for (size_t i = 0; i < create.n_options; i++) {
    const PgQuery__DefElem& option = *create.options[i]->def_elem;
    if (std::string_view(option.defname) != "sysid" && !ApplyOption(ddl, option, &role))
      memberships.push_back(&option);
  }
  RequireMayManage(ddl, nullptr, "create");
  RequireOnlySuperusersMake(ddl, role, false);
  if (name == "public" || name == "none" || name.starts_with("pg_"))
    throw QueryError(MakeError(MakeSqlState("42939"), "role name \"{}\" is reserved", name));
  if (ddl.catalog.FindRole(name) != nullptr)
    Throw(sqlstate::kDuplicateObject, "role \"{}\" already exists", name);
  role.oid = ddl.NewOid();
  Oid oid = role.oid;
  ddl.catalog.roles[oid] = std::move(role);
  for (const PgQuery__DefElem* option : memberships) {
    std::string_view kind = option->defname;
    Role& made = ddl.catalog.roles.at(oid);
    ForEachRole(ddl, option->arg, [&](Role& other) {
      if (kind == "addroleto")
        AddMember(ddl, other, made, false);
      else
        AddMember(ddl, made, other, kind == "adminmembers");
    });
  }
}

void AlterRole(Ddl& ddl, const PgQuery__AlterRoleStmt& alter) {
  Role& role = GetRole(ddl, RoleName(ddl, *alter.role));
  const Role& self = CurrentRole(ddl);
  bool was_superuser = role.superuser;
  bool only_password =
      alter.n_options == 1 && std::string_view(alter.options[0]->def_elem->defname) == "password";
  if (!(only_password && self.oid == role.oid)) RequireMayManage(ddl, &role, "alter");
  Role changed = role;
  for (size_t i = 0; i < alter.n_options; i++) {
    const PgQuery__DefElem& option = *alter.options[i]->def_elem;
    if (ApplyOption(ddl, option, &changed)) continue;
    if (std::string_view(option.defname) != "rolemembers")
      Refuse("ALTER ROLE with {} is not supported", option.defname);
    ForEachRole(ddl, option.arg, [&](Role& member) {  // ALTER GROUP … ADD, DROP USER
      if (alter.action > 0)
        AddMember(ddl, role, member, false);
      else
        std::erase_if(member.member_of, [&](const auto& m) { return m.role == role.oid; });
    });
  }
  RequireOnlySuperusersMake(ddl, changed, was_superuser);
  changed.member_of = role.member_of;
  role = std::move(changed);
  ddl.changed = true;
}

void DropRole(Ddl& ddl, const PgQuery__DropRoleStmt& drop) {
  RequireMayManage(ddl, nullptr, "drop");
  for (size_t i = 0; i < drop.n_roles; i++) {
    std::string name = RoleName(ddl, *drop.roles[i]->role_spec);
    const Role* role = ddl.catalog.FindRole(name);
    if (role == nullptr && drop.missing_ok) {
      ddl.Notice(MakeError(sqlstate::kSuccess, "role \"{}\" does not exist, skipping", name));
      continue;
    }
    role = &GetRole(ddl, name);
    if (role->oid == kBootstrapRoleOid)
      Throw(sqlstate::kDependentObjectsStillExist,
            "cannot drop role {} because it is required by the database system", name);
    if (name == ddl.context.user) Throw(sqlstate::kObjectInUse, "current user cannot be dropped");
    if (role->superuser && !CurrentRole(ddl).superuser)
      Throw(sqlstate::kInsufficientPrivilege, "must be superuser to drop superusers");
    std::vector<std::string> dependents = DependentsOf(ddl, *role);
    if (!dependents.empty())
      throw QueryError(MakeError(sqlstate::kDependentObjectsStillExist,
                                 "role \"{}\" cannot be dropped because some objects depend on it",
                                 name)
                           .Detail(fmt::format("{}", fmt::join(dependents, "\n"))));
    Oid oid = role->oid;
    ddl.catalog.roles.erase(oid);
    for (auto& [other_oid, other] : ddl.catalog.roles)
      std::erase_if(other.member_of, [&](const auto& m) { return m.role == oid; });
    ddl.changed = true;
  }
}

void RenameRole(Ddl& ddl, std::string_view from, std::string_view to) {
  Role& role = GetRole(ddl, from);
  RequireMayManage(ddl, &role, "rename");
  if (from == ddl.context.user)
    Throw(sqlstate::kFeatureNotSupported, "session user cannot be renamed");
  if (ddl.catalog.FindRole(to) != nullptr)
    Throw(sqlstate::kDuplicateObject, "role \"{}\" already exists", to);
  if (!DependentsOf(ddl, role).empty())
    Refuse("renaming a role that owns objects or has privileges is not supported");
  role.name = to;
  ddl.changed = true;
}

void GrantRole(Ddl& ddl, const PgQuery__GrantRoleStmt& grant) {
  const Role& self = CurrentRole(ddl);
  for (size_t i = 0; i < grant.n_granted_roles; i++) {
    Role& group = GetRole(ddl, grant.granted_roles[i]->access_priv->priv_name);
    bool admin = std::any_of(self.member_of.begin(), self.member_of.end(),
                             [&](const auto& m) { return m.role == group.oid && m.admin_option; });
    if (!self.superuser && !admin && (group.superuser || !self.create_role))
      Throw(sqlstate::kInsufficientPrivilege, "must have admin option on role \"{}\"", group.name);
    for (size_t j = 0; j < grant.n_grantee_roles; j++) {
      Role& member = GetRole(ddl, RoleName(ddl, *grant.grantee_roles[j]->role_spec));
      if (grant.is_grant) {
        AddMember(ddl, group, member, grant.admin_opt);
        continue;
      }
      auto found = std::find_if(member.member_of.begin(), member.member_of.end(),
                                [&](const auto& m) { return m.role == group.oid; });
      if (found == member.member_of.end())
        ddl.Warning(MakeError(sqlstate::kWarning, "role \"{}\" is not a member of role \"{}\"",
                              member.name, group.name));
      else if (grant.admin_opt)
        found->admin_option = false;
      else
        member.member_of.erase(found);
    }
  }
  ddl.changed = true;
}

void Grant(Ddl& ddl, const PgQuery__GrantStmt& grant) {
  if (grant.targtype == PG_QUERY__GRANT_TARGET_TYPE__ACL_TARGET_DEFAULTS)
    Refuse("ALTER DEFAULT PRIVILEGES is not supported");
  auto targets = TargetsOf(ddl, grant);
  if (!targets) {
    // Dumps of existing set-ups have them.
    ddl.Warning(
        MakeError(sqlstate::kWarning,
                  "{} has no effect: only privileges on tables, sequences and schemas are kept",
                  grant.is_grant ? "GRANT" : "REVOKE"));
    return;
  }
  for (const GrantTarget& target : *targets) GrantOn(ddl, grant, target);
  ddl.changed = true;
}

}  // namespace sluice

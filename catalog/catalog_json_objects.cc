#include "catalog/json_records.h"

namespace sluice {

namespace {

template <typename Letter>
std::string CharText(Letter letter) {
  return std::string(1, static_cast<char>(letter));
}

Json AclItemToJson(const AclItem& i) {
  return {{"grantee", i.grantee},
          {"privileges", i.privileges},
          {"options", i.grant_options},
          {"grantor", i.grantor}};
}

AclItem AclItemFromJson(const Json& j) {
  AclItem i;
  Get(j, "grantee", &i.grantee);
  Get(j, "privileges", &i.privileges);
  Get(j, "options", &i.grant_options);
  Get(j, "grantor", &i.grantor);
  return i;
}

Json MembershipToJson(const Role::Membership& m) {
  return {{"role", m.role}, {"admin", m.admin_option}, {"grantor", m.grantor}};
}

Role::Membership MembershipFromJson(const Json& j) {
  Role::Membership m;
  Get(j, "role", &m.role);
  Get(j, "admin", &m.admin_option);
  Get(j, "grantor", &m.grantor);
  return m;
}

}  // namespace

// null: never granted or revoked.
Json AclToJson(const Acl& acl) {
  return acl.set ? ListToJson(acl.items, AclItemToJson) : Json(nullptr);
}

void AclFromJson(const Json& from, const char* field, Acl* acl) {
  auto found = from.find(field);
  if (found == from.end() || found->is_null()) return;
  acl->set = true;
  ListFromJson(from, field, AclItemFromJson, &acl->items);
}

Json ConstraintToJson(const Constraint& c) {
  return {{"oid", c.oid},
          {"name", c.name},
          {"kind", CharText(c.kind)},
          {"columns", c.columns},
          {"definition", c.definition},
          {"index", c.index},
          {"validated", c.validated},
          {"deferrable", c.deferrable},
          {"deferred", c.deferred},
          {"referenced", c.referenced_table},
          {"referenced_columns", c.referenced_columns},
          {"on_update", CharText(c.on_update)},
          {"on_delete", CharText(c.on_delete)},
          {"match", CharText(c.match)}};
}

Constraint ConstraintFromJson(const Json& j) {
  Constraint c;
  Get(j, "oid", &c.oid);
  Get(j, "name", &c.name);
  GetChar(j, "kind", &c.kind);
  Get(j, "columns", &c.columns);
  Get(j, "definition", &c.definition);
  Get(j, "index", &c.index);
  Get(j, "validated", &c.validated);
  Get(j, "deferrable", &c.deferrable);
  Get(j, "deferred", &c.deferred);
  Get(j, "referenced", &c.referenced_table);
  Get(j, "referenced_columns", &c.referenced_columns);
  GetChar(j, "on_update", &c.on_update);
  GetChar(j, "on_delete", &c.on_delete);
  GetChar(j, "match", &c.match);
  return c;
}

Json IndexToJson(const Index& i) {
  return {{"oid", i.oid},
          {"name", i.name},
          {"method", i.method},
          {"columns", i.columns},
          {"key_columns", i.key_columns},
          {"unique", i.unique},
          {"primary", i.primary},
          {"valid", i.valid},
          {"replica_identity", i.replica_identity},
          {"definition", i.definition},
          {"predicate", i.predicate}};
}

Index IndexFromJson(const Json& j) {
  Index i;
  Get(j, "oid", &i.oid);
  Get(j, "name", &i.name);
  Get(j, "method", &i.method);
  Get(j, "columns", &i.columns);
  Get(j, "key_columns", &i.key_columns);
  Get(j, "unique", &i.unique);
  Get(j, "primary", &i.primary);
  Get(j, "valid", &i.valid);
  Get(j, "replica_identity", &i.replica_identity);
  Get(j, "definition", &i.definition);
  Get(j, "predicate", &i.predicate);
  return i;
}

Json SequenceToJson(const Sequence& s) {
  return {{"schema", s.schema},     {"name", s.name},
          {"owner", s.owner},       {"type", s.type},
          {"start", s.start},       {"increment", s.increment},
          {"min", s.min},           {"max", s.max},
          {"cache", s.cache},       {"cycle", s.cycle},
          {"owned_by", s.owned_by}, {"owned_column", s.owned_column},
          {"identity", s.identity}, {"acl", AclToJson(s.acl)},
          {"storage", s.storage},   {"restart", s.restart}};
}

Sequence SequenceFromJson(Oid oid, const Json& j) {
  Sequence s;
  s.oid = oid;
  Get(j, "schema", &s.schema);
  Get(j, "name", &s.name);
  Get(j, "owner", &s.owner);
  Get(j, "type", &s.type);
  Get(j, "start", &s.start);
  Get(j, "increment", &s.increment);
  Get(j, "min", &s.min);
  Get(j, "max", &s.max);
  Get(j, "cache", &s.cache);
  Get(j, "cycle", &s.cycle);
  Get(j, "owned_by", &s.owned_by);
  Get(j, "owned_column", &s.owned_column);
  Get(j, "identity", &s.identity);
  Get(j, "storage", &s.storage);
  Get(j, "restart", &s.restart);
  AclFromJson(j, "acl", &s.acl);
  return s;
}

Json SchemaToJson(const std::string& name, const Schema& s) {
  return {{"name", name}, {"owner", s.owner}, {"acl", AclToJson(s.acl)}};
}

std::pair<std::string, Schema> SchemaFromJson(Oid oid, const Json& j) {
  std::pair<std::string, Schema> s;
  s.second.oid = oid;
  Get(j, "name", &s.first);
  Get(j, "owner", &s.second.owner);
  AclFromJson(j, "acl", &s.second.acl);
  return s;
}

Json RoleToJson(const Role& r) {
  return {{"name", r.name},
          {"superuser", r.superuser},
          {"login", r.login},
          {"create_database", r.create_database},
          {"create_role", r.create_role},
          {"inherit", r.inherit},
          {"connection_limit", r.connection_limit},
          {"password_verifier", r.password_verifier},
          {"valid_until", r.valid_until},
          {"member_of", ListToJson(r.member_of, MembershipToJson)}};
}

Role RoleFromJson(Oid oid, const Json& j) {
  Role r;
  r.oid = oid;
  Get(j, "name", &r.name);
  Get(j, "superuser", &r.superuser);
  Get(j, "login", &r.login);
  Get(j, "create_database", &r.create_database);
  Get(j, "create_role", &r.create_role);
  Get(j, "inherit", &r.inherit);
  Get(j, "connection_limit", &r.connection_limit);
  Get(j, "password_verifier", &r.password_verifier);
  Get(j, "valid_until", &r.valid_until);
  ListFromJson(j, "member_of", MembershipFromJson, &r.member_of);
  return r;
}

}  // namespace sluice

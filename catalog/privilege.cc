#include "catalog/privilege.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace sluice {
namespace {

bool Reaches(const Catalog& catalog, const Role& role, Oid group, bool only_inherited,
             std::set<Oid>* seen) {
  if (role.oid == group) return true;
  if (only_inherited && !role.inherit) return false;
  if (!seen->insert(role.oid).second) return false;
  for (const Role::Membership& membership : role.member_of) {
    auto found = catalog.roles.find(membership.role);
    if (found != catalog.roles.end() &&
        Reaches(catalog, found->second, group, only_inherited, seen))
      return true;
  }
  return false;
}

// With the privileges in `order`'s order.
std::string Union(std::string_view a, std::string_view b, std::string_view order) {
  std::string out;
  for (char letter : order)
    if (a.find(letter) != a.npos || b.find(letter) != b.npos) out.push_back(letter);
  return out;
}

std::string Without(std::string_view from, std::string_view letters) {
  std::string out;
  for (char letter : from)
    if (letters.find(letter) == letters.npos) out.push_back(letter);
  return out;
}

void Materialize(const EffectiveAcl& before, Acl* acl) {
  if (acl->set) return;
  acl->set = true;
  std::string owner(before.owner);
  acl->items = {{owner, std::string(before.all), "", owner}};
  if (!before.public_default.empty())
    acl->items.push_back({"", std::string(before.public_default), "", owner});
}

const char* NoteKind(const Relation& relation) {
  switch (relation.kind) {
    case RelationKind::kView:
      return "view";
    case RelationKind::kMaterializedView:
      return "materialized view";
    case RelationKind::kForeignTable:
      return "foreign table";
    default:
      return "table";
  }
}

}  // namespace

char PrivilegeLetter(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, char>, 9> kNames{{{"insert", 'a'},
                                                                            {"select", 'r'},
                                                                            {"update", 'w'},
                                                                            {"delete", 'd'},
                                                                            {"truncate", 'D'},
                                                                            {"references", 'x'},
                                                                            {"trigger", 't'},
                                                                            {"usage", 'U'},
                                                                            {"create", 'C'}}};
  for (auto [known, letter] : kNames)
    if (known == name) return letter;
  return '\0';
}

bool IsMemberOf(const Catalog& catalog, const Role& role, Oid group) {
  std::set<Oid> seen;
  return role.superuser || Reaches(catalog, role, group, false, &seen);
}

bool HasPrivilegesOf(const Catalog& catalog, const Role& role, Oid group) {
  std::set<Oid> seen;
  return role.superuser || Reaches(catalog, role, group, true, &seen);
}

bool HasPrivilegesOf(const Catalog& catalog, const Role& role, std::string_view group) {
  if (role.superuser || role.name == group) return true;
  const Role* found = catalog.FindRole(group);
  return found != nullptr && HasPrivilegesOf(catalog, role, found->oid);
}

EffectiveAcl AclOf(const Relation& relation) {
  return {relation.acl, relation.owner, kTablePrivileges};
}

EffectiveAcl AclOf(const Sequence& sequence) {
  return {sequence.acl, sequence.owner, kSequencePrivileges};
}

EffectiveAcl AclOf(const Schema& schema, std::string_view name) {
  return {schema.acl, schema.owner, kSchemaPrivileges, name == "public" ? "U" : ""};
}

bool HasPrivilege(const Catalog& catalog, const Role& role, const EffectiveAcl& acl,
                  char privilege) {
  if (role.superuser) return true;
  if (!acl.own.set)
    return acl.public_default.find(privilege) != acl.public_default.npos ||
           HasPrivilegesOf(catalog, role, acl.owner);
  return std::any_of(acl.own.items.begin(), acl.own.items.end(), [&](const AclItem& item) {
    return item.privileges.find(privilege) != std::string::npos &&
           (item.grantee.empty() || HasPrivilegesOf(catalog, role, item.grantee));
  });
}

void RequirePrivilege(const Catalog& catalog, const Role& role, const Relation& relation,
                      char privilege) {
  if (!HasPrivilege(catalog, role, AclOf(relation), privilege))
    Throw(sqlstate::kInsufficientPrivilege, "permission denied for {} {}", NoteKind(relation),
          relation.name);
}

void RequireOwner(const Catalog& catalog, const Role& role, const Relation& relation) {
  if (!HasPrivilegesOf(catalog, role, relation.owner))
    Throw(sqlstate::kInsufficientPrivilege, "must be owner of {} {}", NoteKind(relation),
          relation.name);
}

void GrantPrivileges(const EffectiveAcl& before, std::string_view grantee,
                     std::string_view privileges, bool grant_option, std::string_view grantor,
                     Acl* acl) {
  Materialize(before, acl);
  for (AclItem& item : acl->items) {
    if (item.grantee != grantee || item.grantor != grantor) continue;
    item.privileges = Union(item.privileges, privileges, before.all);
    if (grant_option) item.grant_options = Union(item.grant_options, privileges, before.all);
    return;
  }
  std::string in_order = Union(privileges, "", before.all);
  acl->items.push_back(
      {std::string(grantee), in_order, grant_option ? in_order : "", std::string(grantor)});
}

void RevokePrivileges(const EffectiveAcl& before, std::string_view grantee,
                      std::string_view privileges, bool only_grant_option, Acl* acl) {
  Materialize(before, acl);
  for (AclItem& item : acl->items) {
    if (item.grantee != grantee) continue;
    item.grant_options = Without(item.grant_options, privileges);
    if (!only_grant_option) item.privileges = Without(item.privileges, privileges);
  }
  std::erase_if(acl->items, [](const AclItem& item) { return item.privileges.empty(); });
}

}  // namespace sluice

// Who may do what: memberships and access control lists, as Postgres judges them.
#pragma once

#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace sluice {

// Privileges are aclitem's letters.
inline constexpr std::string_view kTablePrivileges = "arwdDxt", kSequencePrivileges = "rwU",
                                  kSchemaPrivileges = "UC";
inline constexpr char kInsert = 'a', kSelect = 'r', kUpdate = 'w', kDelete = 'd', kTruncate = 'D',
                      kUsage = 'U', kCreate = 'C';

// The privilege's letter, "" for none that exists: "select" → 'r'.
char PrivilegeLetter(std::string_view name);

// Whether `role` is `group` or a member of it, directly or not. Superusers are members of all.
bool IsMemberOf(const Catalog& catalog, const Role& role, Oid group);
// The same, but only through roles that inherit: what `group` may do, `role` may do without SET
// ROLE.
bool HasPrivilegesOf(const Catalog& catalog, const Role& role, Oid group);
bool HasPrivilegesOf(const Catalog& catalog, const Role& role, std::string_view group);

// The list that holds for an object: its own, or the default one of its owner.
struct EffectiveAcl {
  const Acl& own;
  std::string_view owner;
  std::string_view all;  // kTablePrivileges, …
  std::string_view public_default =
      {};  // what PUBLIC has as long as nothing was granted or revoked
};
EffectiveAcl AclOf(const Relation& relation);
EffectiveAcl AclOf(const Sequence& sequence);
EffectiveAcl AclOf(const Schema& schema, std::string_view name);

bool HasPrivilege(const Catalog& catalog, const Role& role, const EffectiveAcl& acl,
                  char privilege);
// 42501 "permission denied for table t".
void RequirePrivilege(const Catalog& catalog, const Role& role, const Relation& relation,
                      char privilege);
// 42501 "must be owner of table t".
void RequireOwner(const Catalog& catalog, const Role& role, const Relation& relation);

// Changes `acl`, first filling it with what holds by default. `grantee` empty: PUBLIC.
void GrantPrivileges(const EffectiveAcl& before, std::string_view grantee,
                     std::string_view privileges, bool grant_option, std::string_view grantor,
                     Acl* acl);
void RevokePrivileges(const EffectiveAcl& before, std::string_view grantee,
                      std::string_view privileges, bool only_grant_option, Acl* acl);

}  // namespace sluice

#include "postmaster/privilege_kernels.h"

#include "catalog/privilege.h"
#include "postmaster/object_names.h"
#include "postmaster/pg_catalog.h"
#include "types/kernel_helpers.h"

namespace sluice {
namespace {

using View = std::string_view;

const Catalog& CurrentCatalog() {
  return *CurrentCatalogSession().catalog;
}

// By oid or by name.
const Role& RoleOf(const Column& column, size_t row) {
  const Catalog& catalog = CurrentCatalog();
  if (column.physical == Physical::kUint4) {
    auto found = catalog.roles.find(column.At<uint32_t>(row));
    if (found == catalog.roles.end())
      Throw(sqlstate::kUndefinedObject, "role with OID {} does not exist",
            column.At<uint32_t>(row));
    return found->second;
  }
  const Role* role = catalog.FindRole(column.At<View>(row));
  if (role == nullptr)
    Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", column.At<View>(row));
  return *role;
}

// The first argument where there are more than `least`, else the current user.
const Role& Subject(const KernelCall& call, size_t least, size_t row) {
  if (call.args.size() > least) return RoleOf(*call.args[0], row);
  const std::string& user = CurrentCatalogSession().user;
  const Role* role = CurrentCatalog().FindRole(user);
  if (role == nullptr) Throw(sqlstate::kUndefinedObject, "role \"{}\" does not exist", user);
  return *role;
}

// A list like "SELECT, UPDATE WITH GRANT OPTION": one of them is enough.
struct Wanted {
  std::string name;  // lower case
  bool with_option = false;
};
std::vector<Wanted> ParsePrivileges(View text, View option) {
  std::vector<Wanted> all;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string word(text.substr(0, comma));
    text.remove_prefix(comma == View::npos ? text.size() : comma + 1);
    std::transform(word.begin(), word.end(), word.begin(), tolower);
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    Wanted wanted{word, word.ends_with(option)};
    if (wanted.with_option) wanted.name.resize(word.size() - option.size());
    all.push_back(std::move(wanted));
  }
  return all;
}

[[noreturn]] void ThrowUnknown(View privilege) {
  Throw(sqlstate::kInvalidParameterValue, "unrecognized privilege type: \"{}\"", privilege);
}

bool HasAny(const Role& role, const EffectiveAcl& acl, View privileges) {
  bool has = false;
  for (const Wanted& wanted : ParsePrivileges(privileges, " with grant option")) {
    char letter = PrivilegeLetter(wanted.name);
    if (letter == '\0' || acl.all.find(letter) == View::npos) ThrowUnknown(privileges);
    if (!HasPrivilege(CurrentCatalog(), role, acl, letter)) continue;
    has |= !wanted.with_option || HasPrivilegesOf(CurrentCatalog(), role, acl.owner);
  }
  return has;
}

std::optional<bool> OnRelation(const Role& role, Oid oid, View privileges) {
  const Catalog& catalog = CurrentCatalog();
  if (const Relation* relation = catalog.FindRelation(oid))
    return HasAny(role, AclOf(*relation), privileges);
  if (auto sequence = catalog.sequences.find(oid); sequence != catalog.sequences.end())
    return HasAny(role, AclOf(sequence->second), privileges);
  if (FindClass(catalog, oid).oid == kInvalidOid) return std::nullopt;
  static const Acl kNone;
  return HasAny(role, {kNone, kBootstrapRole, kTablePrivileges, "r"}, privileges);  // a catalog
}

// `behind`: arguments that follow the object.
void OnRelations(const KernelCall& call, size_t behind) {
  size_t object = call.args.size() - 1 - behind;
  ForEachRow(call, [&](size_t i) {
    const Column& column = *call.args[object];
    Oid oid = column.physical == Physical::kUint4
                  ? column.At<uint32_t>(i)
                  : object_names->Find(kRegclassOid, column.At<View>(i));
    auto has = OnRelation(Subject(call, 1 + behind, i), oid, call.args.back()->At<View>(i));
    if (!has) return SetNull(call, i);
    call.out->Data<uint8_t>()[i] = *has;
  });
}

}  // namespace

void HasTablePrivilege(const KernelCall& call) {
  OnRelations(call, 1);
}

// Privileges are kept for whole tables.
void HasColumnPrivilege(const KernelCall& call) {
  OnRelations(call, 2);
}

void HasSchemaPrivilege(const KernelCall& call) {
  size_t object = call.args.size() - 2;
  ForEachRow(call, [&](size_t i) {
    const Catalog& catalog = CurrentCatalog();
    const Column& column = *call.args[object];
    bool by_oid = column.physical == Physical::kUint4;
    const Role& role = Subject(call, 2, i);
    View privileges = call.args.back()->At<View>(i);
    for (const auto& [name, schema] : catalog.schemas) {
      if (by_oid ? SchemaOid(catalog, name) != column.At<uint32_t>(i) : name != column.At<View>(i))
        continue;
      call.out->Data<uint8_t>()[i] = HasAny(role, AclOf(schema, name), privileges);
      return;
    }
    bool exists = false;  // of Postgres's own: everybody may use it
    for (const std::string& name : AllSchemas(catalog))
      exists |=
          by_oid ? SchemaOid(catalog, name) == column.At<uint32_t>(i) : name == column.At<View>(i);
    if (!exists && by_oid) return SetNull(call, i);
    if (!exists)
      Throw(sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist", column.At<View>(i));
    static const Acl kNone;
    call.out->Data<uint8_t>()[i] =
        HasAny(role, {kNone, kBootstrapRole, kSchemaPrivileges, "U"}, privileges);
  });
}

void HasDatabasePrivilege(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    const Role& role = Subject(call, 2, i);
    bool has = false;
    for (const Wanted& wanted :
         ParsePrivileges(call.args.back()->At<View>(i), " with grant option")) {
      bool for_all =
          wanted.name == "connect" || wanted.name == "temporary" || wanted.name == "temp";
      if (!for_all && wanted.name != "create") ThrowUnknown(call.args.back()->At<View>(i));
      has |= role.superuser || (for_all && !wanted.with_option);
    }
    call.out->Data<uint8_t>()[i] = has;
  });
}

void IsSuperuserKernel(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) { call.out->Data<uint8_t>()[i] = Subject(call, 2, i).superuser; });
}

void HasRole(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    const Role& role = Subject(call, 2, i);
    const Role& group = RoleOf(*call.args[call.args.size() - 2], i);
    bool has = false;
    for (const Wanted& wanted :
         ParsePrivileges(call.args.back()->At<View>(i), " with admin option")) {
      if (wanted.name != "member" && wanted.name != "usage")
        ThrowUnknown(call.args.back()->At<View>(i));
      bool admin = role.superuser;
      for (const Role::Membership& membership : role.member_of)
        admin |= membership.role == group.oid && membership.admin_option;
      has |= wanted.with_option       ? admin
             : wanted.name == "usage" ? HasPrivilegesOf(CurrentCatalog(), role, group.oid)
                                      : IsMemberOf(CurrentCatalog(), role, group.oid);
    }
    call.out->Data<uint8_t>()[i] = has;
  });
}

}  // namespace sluice

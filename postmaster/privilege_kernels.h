// has_…_privilege() and pg_has_role(), by the roles and access control lists of the catalog.
#pragma once

#include "types/kernel.h"

namespace sluice {

// The arguments: [user,] object [, column], privilege. NULL where an object given by oid is not
// there; 42704 for a role that is not.
void HasTablePrivilege(const KernelCall& call);
void HasColumnPrivilege(const KernelCall& call);
void HasSchemaPrivilege(const KernelCall& call);
void HasDatabasePrivilege(const KernelCall& call);
// What nobody is granted anything on: only superusers have a privilege.
void IsSuperuserKernel(const KernelCall& call);
void HasRole(const KernelCall& call);

}  // namespace sluice

// regclass, regtype and their kin: oids that are written as the names of objects. And the types of
// the system catalogs' own columns.
#pragma once

#include <string>
#include <string_view>

#include "types/oid.h"

namespace sluice {

inline constexpr Oid kRegprocedureOid = 2202, kRegoperOid = 2203, kRegoperatorOid = 2204,
                     kRegconfigOid = 3734, kRegdictionaryOid = 3769, kRegnamespaceOid = 4089,
                     kRegroleOid = 4096, kRegcollationOid = 4191;

// int2vector and oidvector are arrays with a text format of their own; pg_node_tree and aclitem are
// texts.
inline constexpr Oid kInt2vectorOid = 22, kOidvectorOid = 30, kPgNodeTreeOid = 194,
                     kAclitemOid = 1033;

// Those whose values are kept on the wire (Physical::kBytes), not as a number.
constexpr bool IsWireObjectName(Oid type) {
  switch (type) {
    case kRegprocedureOid:
    case kRegoperOid:
    case kRegoperatorOid:
    case kRegconfigOid:
    case kRegdictionaryOid:
    case kRegnamespaceOid:
    case kRegroleOid:
    case kRegcollationOid:
      return true;
  }
  return false;
}
constexpr bool IsObjectName(Oid type) {
  return type == kRegclassOid || type == kRegtypeOid || type == kRegprocOid ||
         IsWireObjectName(type);
}

// How they are written. A process that has a catalog sets `object_names`; without, their text is
// refused.
class ObjectNames {
 public:
  virtual ~ObjectNames() = default;
  virtual std::string NameOf(Oid type, Oid object) const = 0;
  virtual Oid Find(Oid type, std::string_view name) const = 0;  // throws where there is none
};
extern const ObjectNames* object_names;

}  // namespace sluice

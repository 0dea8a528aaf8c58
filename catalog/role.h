// Roles and privileges.
#pragma once

#include <string>
#include <vector>

#include "types/oid.h"

namespace sluice {

// The superuser that is there from the start, and stays.
inline constexpr const char* kBootstrapRole = "postgres";
inline constexpr Oid kBootstrapRoleOid = 10;

struct Role {
  Oid oid = kInvalidOid;
  std::string name;
  bool superuser = false;
  bool login = false;
  bool create_database = false;
  bool create_role = false;
  bool inherit = true;
  int connection_limit = -1;      // -1: none
  std::string password_verifier;  // "SCRAM-SHA-256$…"; empty: none
  std::string valid_until;        // timestamptz, ISO in UTC; empty: for ever
  struct Membership {
    Oid role = kInvalidOid;
    bool admin_option = false;
    std::string grantor;
    bool operator==(const Membership&) const = default;
  };
  std::vector<Membership> member_of;
};

// As Postgres's aclitem: letters of aclitem's own ("arwdDxt", "UC", …).
struct AclItem {
  std::string grantee;  // empty: PUBLIC
  std::string privileges;
  std::string grant_options;  // those of `privileges` that the grantee may grant on
  std::string grantor;
  bool operator==(const AclItem&) const = default;
};

// `set`: false as long as nobody granted or revoked: the owner's default privileges hold.
struct Acl {
  bool set = false;
  std::vector<AclItem> items;
  bool operator==(const Acl&) const = default;
};

}  // namespace sluice

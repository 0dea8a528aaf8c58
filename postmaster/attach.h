// CALL sluice.attach_table, detach_table and analyze.
//
//   attach_table(name, schema => 'public', servers => all, partition_column => …, expression => …,
//   rule => …)
//     rule 'hash': Postgres's hash partitioning of `partition_column`, one remainder a server, in
//     the servers' order rule 'list': the value of `expression` tells the server; the values are
//     those that the rows have now, or given
//       in the servers' order: 'list 1; 2; 3; 0', 'list a,b; c; default'
//     rule 'range': ascending split points between the servers: 'range 100, 200, 300' for four
//     none: rows are spread by a rule that only the application knows
//   detach_table(name, schema => 'public')
//   analyze(name => all, schema => 'public')
#pragma once

#include "postmaster/ddl_remote.h"

namespace sluice {

struct AttachRequest {
  std::string name, schema = "public";
  std::vector<Oid> servers;  // in order
  std::vector<std::string> expressions;
  PartitionStrategy strategy = PartitionStrategy::kNone;
  std::string values;  // what follows the word of the rule
};

// One table, as the servers have it; throws where they differ: 42P01, 42804, 42P21.
std::vector<RemoteTable> ReadSameTables(Ddl& ddl, const AttachRequest& request);
// The bounds of the children by the rule, in the order of the servers.
std::vector<PartitionBound> AttachBounds(Ddl& ddl, const AttachRequest& request,
                                         const Relation& parent);

}  // namespace sluice

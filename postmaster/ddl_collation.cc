// The shards' collations: text is ordered here only as the shards order it.
#include "postmaster/ddl_internal.h"

namespace sluice {

namespace {

// By to_jsonb, so that servers of versions without the column answer too. Provider b (built in)
// orders by code point, as C does.
constexpr const char* kDefaultCollationSql =
    "SELECT coalesce(to_jsonb(d)->>'datlocprovider', 'c'),"
    " coalesce(to_jsonb(d)->>'daticulocale', to_jsonb(d)->>'datlocale', datcollate),"
    " coalesce(to_jsonb(d)->>'datcollversion', '')"
    " FROM pg_database d WHERE datname = current_database()";

// "c en_US.UTF-8 2.36" → its three parts; the locale may have spaces, the others not.
void SplitCollation(const std::string& text, char* provider, std::string* locale,
                    std::string* version) {
  size_t last = text.rfind(' ');
  *provider = text[0];
  *locale = text.substr(2, last - 2);
  *version = text.substr(last + 1);
}

void StoreCollation(Ddl& ddl, Server* server, const RemoteRow& row) {
  std::string provider = *row[0], locale = *row[1];
  if (provider == "b") provider = "c", locale = "C";
  server->collation = fmt::format("{} {} {}", provider, locale, *row[2]);
  ddl.changed = true;
}

// Servers whose tables' text order would be merged here.
std::set<Oid> ServersInUse(const Ddl& ddl) {
  std::set<Oid> used;
  for (const auto& [oid, relation] : ddl.catalog.relations)
    if (relation.server != kInvalidOid &&
        ddl.catalog.servers.at(relation.server).wrapper == kPostgresWrapper)
      used.insert(relation.server);
  return used;
}

void WarnOfDifference(const Ddl& ddl, const Server& a, const Server& b) {
  ddl.Warning(MakeError(sqlstate::kCollationMismatch,
                        "servers \"{}\" and \"{}\" have different default collations", a.name,
                        b.name)
                  .Detail(fmt::format("\"{}\" and \"{}\" (provider, locale, version).", a.collation,
                                      b.collation))
                  .Hint("Text under the default collation cannot be ordered over these servers."));
}

// A server that did not answer is not asked by each of a script's CREATE FOREIGN TABLEs again.
std::set<Oid>& Unreachable() {
  static auto* servers = new std::set<Oid>;
  return *servers;
}

}  // namespace

// Where servers differ, or one was not asked yet, the locale is one that no host has: ordering by
// it is refused.
void SetDefaultCollation(Ddl& ddl) {
  CatalogCollation collation{kDefaultCollationOid, "pg_catalog", "default", 'c', "", "", true};
  const Server* first = nullptr;
  for (Oid oid : ServersInUse(ddl)) {
    const Server& server = ddl.catalog.servers.at(oid);
    if (server.collation.empty()) {
      collation.locale = fmt::format("(unknown on server {})", server.name);
    } else if (first == nullptr) {
      first = &server;
    } else if (server.collation != first->collation) {
      collation.locale =
          fmt::format("(differs between servers {} and {})", first->name, server.name);
      WarnOfDifference(ddl, *first, server);
      break;
    }
  }
  if (first == nullptr && collation.locale.empty()) return;  // no server in use: as it was
  if (collation.locale.empty())
    SplitCollation(first->collation, &collation.provider, &collation.locale, &collation.version);
  else
    collation.locale.resize(
        std::min<size_t>(collation.locale.size(), 60));  // CollationInfo::locale
  CatalogCollation& known = ddl.catalog.collations[kDefaultCollationOid];
  if (known.locale == collation.locale && known.provider == collation.provider &&
      known.version == collation.version)
    return;
  known = std::move(collation);
  ddl.changed = true;
}

Oid ImportCollation(Ddl& ddl, const RemoteCollation& as_reported) {
  RemoteCollation remote = as_reported;
  if (remote.provider == 'b') remote.provider = 'c', remote.locale = "C";
  if (remote.schema == "pg_catalog" &&
      (remote.name == "C" || remote.name == "POSIX" || remote.name == "default"))
    return ddl.catalog.FindCollationByName("pg_catalog", remote.name);
  for (auto& [oid, known] : ddl.catalog.collations) {
    if (known.name != remote.name || known.schema != remote.schema) continue;
    bool same = known.provider == remote.provider && known.locale == remote.locale &&
                known.version == remote.version && known.deterministic == remote.deterministic;
    if (!same)
      throw QueryError(
          MakeError(sqlstate::kCollationMismatch, "collation \"{}\" differs between servers",
                    remote.name)
              .Detail(fmt::format("\"{} {} {}\" and \"{} {} {}\" (provider, locale, version).",
                                  known.provider, known.locale, known.version, remote.provider,
                                  remote.locale, remote.version)));
    return oid;
  }
  CatalogCollation added;
  added.oid = ddl.NewOid();
  added.schema = remote.schema;
  added.name = remote.name;
  added.provider = remote.provider;
  added.locale = remote.locale;
  added.version = remote.version;
  added.deterministic = remote.deterministic;
  Oid oid = added.oid;
  ddl.catalog.collations.emplace(oid, std::move(added));
  return oid;
}

std::string RemoteCollationColumns(std::string_view alias) {
  return fmt::format(
      "coalesce(to_jsonb({0})->>'colliculocale', to_jsonb({0})->>'colllocale', {0}.collcollate),"
      " coalesce({0}.collversion, ''), {0}.collprovider, {0}.collisdeterministic",
      alias);
}

Oid ResolveCollation(Ddl& ddl, const PgQuery__CollateClause& clause, Oid server) {
  QualifiedName name = NameOfList(ddl, clause.collname, clause.n_collname);
  Oid found = ddl.catalog.FindCollationByName(name.schema, name.name);
  if (found != kInvalidOid) return found;
  if (server != kInvalidOid && ddl.catalog.servers.at(server).wrapper == kPostgresWrapper) {
    std::string sql = "SELECT n.nspname, c.collname, " + RemoteCollationColumns("c") +
                      " FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace"
                      " WHERE c.collname = " +
                      QuoteLiteral(name.name) +
                      " AND c.collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding()))";
    if (!name.schema.empty()) sql += " AND n.nspname = " + QuoteLiteral(name.schema);
    const RemoteQuery query{server, sql};
    std::vector<RemoteRows> results = ddl.Remote(std::span(&query, 1));
    if (!results[0].rows.empty()) return ImportCollation(ddl, ReadCollation(results[0].rows[0], 0));
  }
  ddl.ThrowAt(MakeError(sqlstate::kUndefinedObject,
                        "collation \"{}\" for encoding \"UTF8\" does not exist", name.name),
              clause.location);
}

RemoteCollation ReadCollation(const RemoteRow& row, size_t first) {
  RemoteCollation collation;
  collation.schema = row[first].value_or("");
  collation.name = row[first + 1].value_or("");
  collation.locale = row[first + 2].value_or("");
  collation.version = row[first + 3].value_or("");
  collation.provider = row[first + 4].value_or("c")[0];
  collation.deterministic = row[first + 5].value_or("t") == "t";
  return collation;
}

void ReadDefaultCollations(Ddl& ddl, std::span<const Oid> servers, bool required) {
  std::vector<RemoteQuery> queries;
  for (Oid oid : servers) {
    const Server& server = ddl.catalog.servers.at(oid);
    if (server.wrapper != kPostgresWrapper) continue;
    if (!required && (!server.collation.empty() || Unreachable().contains(oid))) continue;
    queries.push_back({oid, kDefaultCollationSql});
  }
  try {
    std::vector<RemoteRows> results = ddl.Remote(queries);
    for (size_t i = 0; i < queries.size(); i++)
      if (!results[i].rows.empty())
        StoreCollation(ddl, &ddl.catalog.servers.at(queries[i].server), results[i].rows[0]);
  } catch (const QueryError& failure) {
    if (required || failure.error.state == sqlstate::kQueryCanceled) throw;
    for (const RemoteQuery& query : queries) Unreachable().insert(query.server);
    Error warning = failure.error;
    warning.message = fmt::format("could not read the default collation of server \"{}\": {}",
                                  ddl.catalog.servers.at(queries[0].server).name, warning.message);
    warning.hint =
        "Run CALL sluice.analyze() when it can be reached; until then text cannot be ordered here.";
    ddl.Warning(warning);
  }
  SetDefaultCollation(ddl);
}

}  // namespace sluice

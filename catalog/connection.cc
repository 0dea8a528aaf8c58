#include "catalog/connection.h"

#include <arpa/inet.h>
#include <ctime>
#include <netdb.h>
#include <sys/socket.h>

#include "catalog/options.h"
#include "catalog/quote.h"
#include "catalog/service_file.h"

namespace sluice {

namespace {

constexpr int64_t kResolvedSecondsMax = 60;

// Keyword/value pairs as they will go to libpq.
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  for (;;) {
    size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == text.npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string JoinList(const std::vector<std::string>& items) {
  std::string joined;
  for (size_t i = 0; i < items.size(); i++) joined += (i == 0 ? "" : ",") + items[i];
  return joined;
}

bool IsSocketPath(std::string_view host) {
  return host.empty() || host[0] == '/' || host[0] == '@';
}

struct Resolved {
  int64_t at_s;
  std::vector<std::string> addresses;
};

// Every address of a name, in the resolver's order.
std::vector<std::string> Resolve(const std::string& host, std::string_view server_name) {
  static auto* cache = new std::map<std::string, Resolved>;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  auto cached = cache->find(host);
  if (cached != cache->end() && now.tv_sec - cached->second.at_s < kResolvedSecondsMax)
    return cached->second.addresses;

  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  int failure = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failure != 0)
    throw QueryError(MakeError(sqlstate::kUnableToEstablishConnection,
                               "could not connect to server \"{}\"", server_name)
                         .Detail(fmt::format("could not translate host name \"{}\" to address: {}",
                                             host, gai_strerror(failure))));
  Resolved resolved{now.tv_sec, {}};
  for (addrinfo* at = list; at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) ==
        0)
      resolved.addresses.emplace_back(text);
  }
  freeaddrinfo(list);
  if (cache->size() > 1000) cache->clear();
  return ((*cache)[host] = std::move(resolved)).addresses;
}

// host=a,b → one entry of host, hostaddr and port for every address of a, then of b, so that libpq
// tries them all without asking a resolver, and still checks certificates against the names.
void ResolveHosts(Options* options, std::string_view server_name) {
  auto host = options->find("host");
  if (host == options->end() || options->contains("hostaddr")) return;
  std::vector<std::string> names = SplitList(host->second), ports;
  if (auto port = options->find("port"); port != options->end()) ports = SplitList(port->second);
  if (ports.size() > 1 && ports.size() != names.size()) return;  // libpq reports the mismatch

  std::vector<std::string> all_names, all_addresses, all_ports;
  for (size_t i = 0; i < names.size(); i++) {
    std::vector<std::string> addresses = {""};
    if (!IsSocketPath(names[i])) addresses = Resolve(names[i], server_name);
    for (const std::string& address : addresses) {
      all_names.push_back(names[i]);
      all_addresses.push_back(address);
      if (ports.size() > 1) all_ports.push_back(ports[i]);
    }
  }
  (*options)["host"] = JoinList(all_names);
  (*options)["hostaddr"] = JoinList(all_addresses);
  if (!all_ports.empty()) (*options)["port"] = JoinList(all_ports);
}

// What the options say themselves comes first, as with libpq.
void ExpandService(Options* options) {
  auto service = options->find("service");
  if (service == options->end()) return;
  std::string name = service->second;
  options->erase(service);
  for (const auto& [keyword, value] : ReadService(name)) options->try_emplace(keyword, value);
}

void AppendSetting(std::string* sql, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  *sql += fmt::format("SET {} = {};", name, QuoteLiteral(value));
}

std::string SessionSetup(const RemoteSettings& settings) {
  std::string sql;
  AppendSetting(&sql, "TimeZone", settings.time_zone);
  AppendSetting(&sql, "DateStyle", settings.date_style);
  AppendSetting(&sql, "IntervalStyle", settings.interval_style);
  AppendSetting(&sql, "bytea_output", settings.bytea_output);
  sql += fmt::format("SET extra_float_digits = {};", settings.extra_float_digits);
  if (!settings.search_path.empty())  // a list of identifiers, quoted already
    sql += fmt::format("SET search_path = {};", settings.search_path);
  AppendSetting(&sql, "lc_monetary", settings.lc_monetary);
  AppendSetting(&sql, "lc_numeric", settings.lc_numeric);
  AppendSetting(&sql, "lc_time", settings.lc_time);
  AppendSetting(&sql, "xmloption", settings.xml_option);
  // Time held back by a slow client counts on the shard: timeouts are enforced here.
  sql += fmt::format(
      "SET standard_conforming_strings = on;SET statement_timeout = 0;SET lock_timeout = {};"
      "SET idle_in_transaction_session_timeout = 0;",
      settings.lock_timeout_ms);
  return sql;
}

const ConnectionSpec* MakeSpec(const Pairs& pairs, std::string_view server_name,
                               std::string_view setup, const ConnectionLimits& limits,
                               Arena* arena) {
  std::span<std::string_view> keywords = arena->NewArray<std::string_view>(pairs.size());
  std::span<std::string_view> values = arena->NewArray<std::string_view>(pairs.size());
  std::string key;  // lengths keep the pairs apart whatever they contain
  for (size_t i = 0; i < pairs.size(); i++) {
    const auto& [keyword, value] = pairs[i];
    keywords[i] = arena->CopyString(keyword);
    values[i] = arena->CopyString(value);
    key += fmt::format("{}={}:{};", keyword, value.size(), value);
  }
  auto* spec = arena->New<ConnectionSpec>();
  spec->pool_key = arena->CopyString(key);
  spec->server_name = arena->CopyString(server_name);
  spec->keywords = keywords;
  spec->values = values;
  spec->connections_max = limits.connections_max;
  spec->session_setup = arena->CopyString(setup);
  return spec;
}

const Server& GetServer(const Catalog& catalog, Oid oid) {
  auto found = catalog.servers.find(oid);
  if (found == catalog.servers.end())
    Throw(sqlstate::kUndefinedObject, "server with OID {} does not exist", oid);
  return found->second;
}

}  // namespace

const ConnectionSpec* MakeConnectionSpec(const Catalog& catalog, Oid server_oid,
                                         std::string_view user, const RemoteSettings& settings,
                                         const ConnectionLimits& limits, Arena* arena,
                                         bool replication) {
  const Server& server = GetServer(catalog, server_oid);
  if (server.wrapper != kPostgresWrapper)
    Throw(sqlstate::kWrongObjectType, "server \"{}\" is not a server of {}", server.name,
          kPostgresWrapper);
  const UserMapping* mapping = catalog.FindUserMapping(server_oid, user);
  if (mapping == nullptr)
    Throw(sqlstate::kUndefinedObject, "user mapping not found for \"{}\"", user);

  Options options;
  for (const Options* from : {&server.options, &mapping->options})
    for (const auto& [name, value] : *from)
      if (IsConnectionKeyword(name)) options[name] = value;
  ExpandService(&options);
  options.try_emplace("user", user);
  options.try_emplace("application_name", "sluice");
  options["client_encoding"] = "UTF8";
  options["gssencmode"] = "disable";  // the io worker reads the socket itself
  if (replication) options["replication"] = "database";
  ResolveHosts(&options, server.name);
  return MakeSpec(Pairs(options.begin(), options.end()), server.name, SessionSetup(settings),
                  limits, arena);
}

const ConnectionSpec* MakeLinesSpec(const Catalog& catalog, const Relation& table,
                                    const ConnectionLimits& limits, Arena* arena) {
  const Server& server = GetServer(catalog, table.server);
  Options options = server.options;
  for (const auto& [name, value] : table.options) options[name] = value;
  options.erase("format");
  if (options.contains("path")) {
    std::erase_if(options, [](const auto& option) { return option.first != "path"; });
  } else if (!options.contains("port")) {
    Throw(sqlstate::kFdwError, "option \"port\" or \"path\" is required for foreign table \"{}\"",
          table.name);
  } else {
    options.try_emplace("host", "localhost");
    ResolveHosts(&options, server.name);
  }
  return MakeSpec(Pairs(options.begin(), options.end()), server.name, "", limits, arena);
}

uint64_t HashPoolKey(std::string_view pool_key) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the io worker computes the same
  for (unsigned char c : pool_key) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

}  // namespace sluice

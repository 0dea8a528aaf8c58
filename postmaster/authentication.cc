#include "postmaster/authentication.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/random.h>

namespace sluice {
namespace {

std::string PathOf(const std::string& directory, const std::string& file) {
  return file.empty() ? "" : (std::filesystem::path(directory) / file).string();
}

std::string RandomSecret() {
  std::string secret(32, '\0');
  if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    Throw(sqlstate::kInternalError, "could not generate random bytes");
  return secret;
}

}  // namespace

Status LoadAuthentication(const std::string& directory, const Settings& settings,
                          AuthenticationConfig* to) {
  std::string path = PathOf(directory, settings.Text("hba_file"));
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file)
    return MakeError(sqlstate::kConfigFileError, "could not open file \"{}\": {}", path,
                     strerror(errno));
  auto hba = ParseHba(text, path);
  if (!hba) return hba.error();
  std::shared_ptr<TlsContext> tls;
  if (settings.Boolean("ssl")) {
    auto loaded =
        TlsContext::Load({.certificate = PathOf(directory, settings.Text("ssl_cert_file")),
                          .key = PathOf(directory, settings.Text("ssl_key_file")),
                          .ca = PathOf(directory, settings.Text("ssl_ca_file")),
                          .min_protocol = settings.Text("ssl_min_protocol_version")});
    if (!loaded) return loaded.error();
    tls = *loaded;
  }
  to->hba = std::move(*hba);
  to->tls = std::move(tls);
  if (to->mock_secret.empty()) to->mock_secret = RandomSecret();
  return Ok{};
}

}  // namespace sluice

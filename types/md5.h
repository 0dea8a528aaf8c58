// MD5 (RFC 1321), for the SQL function only.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

std::string Md5Hex(std::string_view bytes);

}  // namespace sluice

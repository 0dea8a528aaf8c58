#include "catalog/system_catalog.h"

#include "common/assert.h"

#define SLUICE_DATA(name)                     \
  extern "C" const char sluice_data_##name[]; \
  extern "C" const char sluice_data_##name##_end[];
SLUICE_DATA(pg_aggregate)
SLUICE_DATA(pg_am)
SLUICE_DATA(pg_amop)
SLUICE_DATA(pg_amproc)
SLUICE_DATA(pg_attribute)
SLUICE_DATA(pg_cast)
SLUICE_DATA(pg_class)
SLUICE_DATA(pg_collation)
SLUICE_DATA(pg_conversion)
SLUICE_DATA(pg_language)
SLUICE_DATA(pg_namespace)
SLUICE_DATA(pg_opclass)
SLUICE_DATA(pg_operator)
SLUICE_DATA(pg_opfamily)
SLUICE_DATA(pg_proc)
SLUICE_DATA(pg_range)
SLUICE_DATA(pg_tablespace)
SLUICE_DATA(pg_ts_config)
SLUICE_DATA(pg_ts_config_map)
SLUICE_DATA(pg_ts_dict)
SLUICE_DATA(pg_ts_parser)
SLUICE_DATA(pg_ts_template)
SLUICE_DATA(pg_type)
#define DATA(name) \
  { #name, std::string_view(sluice_data_##name, sluice_data_##name##_end - sluice_data_##name) }

namespace sluice {
namespace {

struct SystemTable {
  std::string_view name, text;
};

const SystemTable kTables[] = {
    DATA(pg_aggregate),  DATA(pg_am),          DATA(pg_amop),          DATA(pg_amproc),
    DATA(pg_attribute),  DATA(pg_cast),        DATA(pg_class),         DATA(pg_collation),
    DATA(pg_conversion), DATA(pg_language),    DATA(pg_namespace),     DATA(pg_opclass),
    DATA(pg_operator),   DATA(pg_opfamily),    DATA(pg_proc),          DATA(pg_range),
    DATA(pg_tablespace), DATA(pg_ts_config),   DATA(pg_ts_config_map), DATA(pg_ts_dict),
    DATA(pg_ts_parser),  DATA(pg_ts_template), DATA(pg_type),
};

// COPY's text format.
std::optional<std::string> Unescape(std::string_view field) {
  if (field == "\\N") return std::nullopt;
  std::string value;
  value.reserve(field.size());
  for (size_t i = 0; i < field.size(); i++) {
    char c = field[i];
    if (c == '\\' && i + 1 < field.size()) {
      c = field[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    value += c;
  }
  return value;
}

}  // namespace

bool SystemRows::Next() {
  if (rest_.empty()) return false;
  size_t end = rest_.find('\n');
  SLUICE_ASSERT(end != rest_.npos);
  std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  fields_.clear();
  for (;;) {
    size_t tab = line.find('\t');
    fields_.push_back(line.substr(0, tab));
    if (tab == line.npos) break;
    line.remove_prefix(tab + 1);
  }
  return true;
}

std::optional<std::string> SystemRows::Value(size_t field) const {
  return Unescape(fields_[field]);
}

SystemRows SystemRowsOf(std::string_view table) {
  for (const SystemTable& t : kTables)
    if (t.name == table) return SystemRows(t.text);
  return SystemRows({});
}

}  // namespace sluice

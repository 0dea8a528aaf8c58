#include "postmaster/catalog_kernels.h"

#include "catalog/privilege.h"
#include "catalog/quote.h"
#include "catalog/system_catalog.h"
#include "catalog/virtual_tables.h"
#include "common/bytes.h"
#include "postmaster/object_names.h"
#include "postmaster/pg_catalog.h"
#include "postmaster/privilege_kernels.h"
#include "postmaster/settings.h"
#include "postmaster/text_kernel.h"
#include "types/array.h"
#include "types/codec.h"

namespace sluice {
namespace {

using View = std::string_view;
using Text = std::optional<std::string>;

void AlwaysFalse(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) { call.out->Data<uint8_t>()[i] = 0; });
}

// --- types

Text FormatTypeOf(const KernelCall& call, size_t i) {
  if (call.args[0]->IsNull(i)) return std::nullopt;
  if (call.args[1]->IsNull(i)) return FormatTypeName(OidArg(call, 0, i));
  return FormatType(OidArg(call, 0, i), call.args[1]->At<int32_t>(i));
}

Text OidVectorTypes(const KernelCall& call, size_t i) {
  ArrayReader reader(call.args[0]->At<View>(i));
  std::string text;
  View element;
  for (bool is_null = false; reader.Next(&element, &is_null);)
    text += (text.empty() ? "" : ", ") + FormatTypeName(LoadBig<uint32_t>(element.data()));
  return text;
}

// --- who and what

std::string NameOfRole(Oid role) {
  const CatalogSession& session = CurrentCatalogSession();
  std::string name = RoleName(*session.catalog, session.user, role);
  return name.empty() ? fmt::format("unknown (OID={})", role) : name;
}
Text UserById(const KernelCall& call, size_t i) {
  return NameOfRole(OidArg(call, 0, i));
}

// Encodings by number, as clients may ask; the server's own is UTF8.
constexpr const char* kEncodings[] = {
    "SQL_ASCII", "EUC_JP",        "EUC_CN",     "EUC_KR",     "EUC_TW",     "EUC_JIS_2004",
    "UTF8",      "MULE_INTERNAL", "LATIN1",     "LATIN2",     "LATIN3",     "LATIN4",
    "LATIN5",    "LATIN6",        "LATIN7",     "LATIN8",     "LATIN9",     "LATIN10",
    "WIN1256",   "WIN1258",       "WIN866",     "WIN874",     "KOI8R",      "WIN1251",
    "WIN1252",   "ISO_8859_5",    "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250",
    "WIN1253",   "WIN1254",       "WIN1255",    "WIN1257",    "KOI8U",      "SJIS",
    "BIG5",      "GBK",           "UHC",        "GB18030",    "JOHAB",      "SHIFT_JIS_2004"};

Text EncodingToChar(const KernelCall& call, size_t i) {
  int32_t number = call.args[0]->At<int32_t>(i);
  bool known = number >= 0 && number < static_cast<int32_t>(std::size(kEncodings));
  return known ? kEncodings[number] : "";
}

void CharToEncoding(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    std::string wanted;
    for (char c : call.args[0]->At<View>(i))
      if (isalnum(static_cast<unsigned char>(c))) wanted += static_cast<char>(toupper(c));
    int32_t& number = call.out->Data<int32_t>()[i] = -1;
    for (size_t n = 0; n < std::size(kEncodings); n++) {
      std::string name;
      for (View rest = kEncodings[n]; !rest.empty(); rest.remove_prefix(1))
        if (isalnum(static_cast<unsigned char>(rest[0]))) name += rest[0];
      if (name == wanted) number = static_cast<int32_t>(n);
    }
  });
}

Text DatabaseEncoding(const KernelCall&, size_t) {
  return "UTF8";
}

// --- what a name alone finds

bool SchemaVisible(std::string_view schema) {
  return IsSchemaInPath(CurrentCatalogSession(), schema);
}

bool TableVisible(Oid oid) {
  return IsClassVisible(CurrentCatalogSession(), oid);
}
bool TypeVisible(Oid oid) {
  const TypeInfo* type = FindType(oid);
  return type != nullptr && SchemaVisible(type->schema);
}
// Postgres's own all are in pg_catalog, which is in every path, first.
bool BuiltinVisible(Oid) {
  return true;
}
bool CollationVisible(Oid oid) {
  const auto& collations = CurrentCatalogSession().catalog->collations;
  auto found = collations.find(oid);
  return found == collations.end() || SchemaVisible(found->second.schema);
}

// A row for what is not there is NULL.
template <auto kVisible, auto kExists>
void Visible(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    Oid oid = OidArg(call, 0, i);
    if (!kExists(oid)) return SetNull(call, i);
    call.out->Data<uint8_t>()[i] = kVisible(oid);
  });
}
bool ClassExists(Oid oid) {
  return FindClass(*CurrentCatalogSession().catalog, oid).oid != kInvalidOid;
}
bool TypeExists(Oid oid) {
  return FindType(oid) != nullptr;
}
bool ProcExists(Oid oid) {
  return FindProc(oid) != nullptr;
}
bool OperatorExists(Oid oid) {
  return FindOperator(oid) != nullptr;
}
bool Anything(Oid) {
  return true;
}

// --- privileges that everybody has, and nobody can be denied

// NULL where the object, given as an oid, is not there.
template <auto kExists>
void EverybodyHas(const KernelCall& call) {
  size_t object = call.args.size() - 2;
  bool by_oid = call.args[object]->physical == Physical::kUint4;
  ForEachRow(call, [&](size_t i) {
    if (by_oid && !kExists(OidArg(call, object, i))) return SetNull(call, i);
    call.out->Data<uint8_t>()[i] = 1;
  });
}
void Always(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) { call.out->Data<uint8_t>()[i] = 1; });
}

// What the owner and everybody may do with an object that nobody has granted on.
std::string AclDefault(char kind, const std::string& owner) {
  struct Default {
    char kind;
    View all, owner;
  };
  static constexpr Default kDefaults[] = {{'c', "", ""},
                                          {'r', "", kTablePrivileges},
                                          {'s', "", kSequencePrivileges},
                                          {'d', "Tc", "CTc"},
                                          {'f', "X", "X"},
                                          {'l', "U", "U"},
                                          {'L', "", "rw"},
                                          {'n', "", kSchemaPrivileges},
                                          {'p', "", "sA"},
                                          {'t', "", "C"},
                                          {'F', "", "U"},
                                          {'S', "", "U"},
                                          {'T', "U", "U"}};
  auto found = std::find_if(std::begin(kDefaults), std::end(kDefaults),
                            [&](const Default& d) { return d.kind == kind; });
  if (found == std::end(kDefaults))
    Throw(sqlstate::kInternalError, "unrecognized objtype abbreviation: {}", kind);
  Acl acl{.set = true};
  if (!found->all.empty()) acl.items.push_back({"", std::string(found->all), "", owner});
  if (!found->owner.empty()) acl.items.push_back({owner, std::string(found->owner), "", owner});
  return *AclValue(acl);
}
void AclDefaultKernel(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    View kind = call.args[0]->At<View>(i);
    View text =
        CopyResult(call, AclDefault(kind.empty() ? ' ' : kind[0], NameOfRole(OidArg(call, 1, i))));
    call.out->Data<View>()[i] =
        ParseText(call.out->type, -1, text, *call.context->settings, call.context->arena);
  });
}

// --- names to oids: NULL where there is none

void StoreObject(const KernelCall& call, size_t row, Oid object) {
  if (call.out->physical == Physical::kUint4) {
    call.out->Data<uint32_t>()[row] = object;
    return;
  }
  char bytes[4];
  StoreBig(bytes, object);
  call.out->Data<View>()[row] = CopyResult(call, {bytes, sizeof bytes});
}

template <Oid kType>
void ToObject(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    std::optional<Oid> oid = TryFindObject(kType, call.args[0]->At<View>(i));
    if (!oid) return SetNull(call, i);
    StoreObject(call, i, *oid);
  });
}
void TextToRegclass(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    call.out->Data<uint32_t>()[i] = object_names->Find(kRegclassOid, call.args[0]->At<View>(i));
  });
}

Text NameConcatOid(const KernelCall& call, size_t i) {
  std::string suffix = fmt::format("_{}", OidArg(call, 1, i));
  View name = call.args[0]->At<View>(i);
  return std::string(name.substr(0, 63 - suffix.size())) + suffix;
}

void Zero(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) { call.out->Data<uint32_t>()[i] = 0; });
}
void IsPublishable(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    const Relation* relation = CurrentCatalogSession().catalog->FindRelation(OidArg(call, 0, i));
    call.out->Data<uint8_t>()[i] = relation != nullptr && relation->kind != RelationKind::kView &&
                                   relation->kind != RelationKind::kForeignTable;
  });
}
// current_setting of a name that is not a constant.
Text Setting(const KernelCall& call, size_t i) {
  std::string name(call.args[0]->At<View>(i));
  const Settings& settings = *CurrentCatalogSession().settings;
  bool missing_ok = call.args.size() > 1 && call.args[1]->At<uint8_t>(i) != 0;
  if (missing_ok) return settings.TryShow(name);
  return settings.Show(name);
}

// set_config(name, value, is_local)
Text SetSetting(const KernelCall& call, size_t i) {
  if (call.args[0]->IsNull(i)) Throw(MakeSqlState("22004"), "SET requires parameter name");
  std::string name(call.args[0]->At<View>(i));
  Settings& settings = *CurrentCatalogSession().settings;
  bool local = !call.args[2]->IsNull(i) && call.args[2]->At<uint8_t>(i) != 0;
  if (call.args[1]->IsNull(i))
    settings.Reset(name, local);
  else
    settings.Set(name, call.args[1]->At<View>(i), SettingSource::kSession, local);
  return settings.Show(name);
}

Text Empty(const KernelCall&, size_t) {
  return "";
}

constexpr Kernel kKernels[] = {
    {1081, "format_type", false, TextOf<FormatTypeOf>},
    {1349, "oidvectortypes", true, TextOf<OidVectorTypes>},
    {3943, "acldefault", true, AclDefaultKernel},
    {1642, "pg_get_userbyid", true, TextOf<UserById>},
    {1597, "pg_encoding_to_char", true, TextOf<EncodingToChar>},
    {1264, "pg_char_to_encoding", true, CharToEncoding},
    {1039, "getdatabaseencoding", true, TextOf<DatabaseEncoding>},
    {2079, "pg_table_is_visible", true, Visible<TableVisible, ClassExists>},
    {2080, "pg_type_is_visible", true, Visible<TypeVisible, TypeExists>},
    {2081, "pg_function_is_visible", true, Visible<BuiltinVisible, ProcExists>},
    {2082, "pg_operator_is_visible", true, Visible<BuiltinVisible, OperatorExists>},
    {2083, "pg_opclass_is_visible", true, Visible<BuiltinVisible, Anything>},
    {3829, "pg_opfamily_is_visible", true, Visible<BuiltinVisible, Anything>},
    {2093, "pg_conversion_is_visible", true, Visible<BuiltinVisible, Anything>},
    {3815, "pg_collation_is_visible", true, Visible<CollationVisible, Anything>},
    {3403, "pg_statistics_obj_is_visible", true, AlwaysNull},  // there are none
    {3756, "pg_ts_parser_is_visible", true, Visible<BuiltinVisible, Anything>},
    {3757, "pg_ts_dict_is_visible", true, Visible<BuiltinVisible, Anything>},
    {3758, "pg_ts_config_is_visible", true, Visible<BuiltinVisible, Anything>},
    {3768, "pg_ts_template_is_visible", true, Visible<BuiltinVisible, Anything>},
    {1079, "regclass", true, TextToRegclass},
    {3495, "to_regclass", true, ToObject<kRegclassOid>},
    {3493, "to_regtype", true, ToObject<kRegtypeOid>},
    {3494, "to_regproc", true, ToObject<kRegprocOid>},
    {3479, "to_regprocedure", true, ToObject<kRegprocedureOid>},
    {3492, "to_regoper", true, ToObject<kRegoperOid>},
    {3476, "to_regoperator", true, ToObject<kRegoperatorOid>},
    {4086, "to_regnamespace", true, ToObject<kRegnamespaceOid>},
    {4093, "to_regrole", true, ToObject<kRegroleOid>},
    {4195, "to_regcollation", true, ToObject<kRegcollationOid>},
    {2077, "current_setting", true, TextOf<Setting>},
    {3294, "current_setting", true, TextOf<Setting>},
    {2078, "set_config", false, TextOf<SetSetting>},
    {266, "nameconcatoid", true, TextOf<NameConcatOid>},
    {2854, "pg_my_temp_schema", true, Zero},
    {2855, "pg_is_other_temp_schema", true, AlwaysFalse},
    {6121, "pg_relation_is_publishable", true, IsPublishable},
    {3778, "pg_tablespace_location", true, TextOf<Empty>},
    // Rows lie on the shards, which are not asked: unknown.
    {2325, "pg_relation_size", true, AlwaysNull},
    {2332, "pg_relation_size", true, AlwaysNull},
    {2997, "pg_table_size", true, AlwaysNull},
    {2998, "pg_indexes_size", true, AlwaysNull},
    {2286, "pg_total_relation_size", true, AlwaysNull},
    {2168, "pg_database_size", true, AlwaysNull},
    {2324, "pg_database_size", true, AlwaysNull},
    {2322, "pg_tablespace_size", true, AlwaysNull},
    {2323, "pg_tablespace_size", true, AlwaysNull},
    {2999, "pg_relation_filenode", true, AlwaysNull},
};

// The forms of has_…_privilege have oids in a row.
struct Family {
  const char* name;
  Oid first, last;
  KernelFn fn;
};
constexpr Family kFamilies[] = {
    {"has_table_privilege", 1922, 1927, HasTablePrivilege},
    {"has_any_column_privilege", 3024, 3029, HasTablePrivilege},
    {"has_column_privilege", 3012, 3023, HasColumnPrivilege},
    {"has_sequence_privilege", 2181, 2186, HasTablePrivilege},
    {"has_database_privilege", 2250, 2255, HasDatabasePrivilege},
    {"has_function_privilege", 2256, 2261, EverybodyHas<ProcExists>},
    {"has_language_privilege", 2262, 2267, Always},
    {"has_schema_privilege", 2268, 2273, HasSchemaPrivilege},
    {"has_tablespace_privilege", 2390, 2395, IsSuperuserKernel},
    {"has_type_privilege", 3138, 3143, EverybodyHas<TypeExists>},
    {"has_foreign_data_wrapper_privilege", 3000, 3005, IsSuperuserKernel},
    {"has_server_privilege", 3006, 3011, IsSuperuserKernel},
    {"pg_has_role", 2705, 2710, HasRole},
};

}  // namespace

std::span<const Kernel> CatalogKernels() {
  static const auto* all = [] {
    auto* kernels = new std::vector<Kernel>(std::begin(kKernels), std::end(kKernels));
    for (const Family& family : kFamilies)
      for (Oid oid = family.first; oid <= family.last; oid++)
        kernels->push_back({oid, family.name, true, family.fn});
    return kernels;
  }();
  return *all;
}

}  // namespace sluice

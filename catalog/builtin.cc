#include "catalog/builtin.h"

#include <charconv>
#include <unordered_set>

#include "catalog/virtual_tables.h"
#include "common/assert.h"

#define SLUICE_DATA(name)                     \
  extern "C" const char sluice_data_##name[]; \
  extern "C" const char sluice_data_##name##_end[];
SLUICE_DATA(type)
SLUICE_DATA(proc)
SLUICE_DATA(operator)
SLUICE_DATA(cast)
SLUICE_DATA(amop_order)
SLUICE_DATA(keyword)
#define DATA(name) \
  std::string_view(sluice_data_##name, sluice_data_##name##_end - sluice_data_##name)

namespace sluice {

namespace {

// Objects of one name, as one run of a vector of pointers sorted by name.
template <typename T>
struct NameIndex {
  std::vector<const T*> sorted;
  std::unordered_map<std::string_view, std::span<const T* const>> runs;

  void Build(const std::vector<T>& from) {
    sorted.reserve(from.size());
    for (const T& item : from) sorted.push_back(&item);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const T* a, const T* b) { return a->name < b->name; });
    runs.reserve(from.size());
    for (size_t i = 0, j; i < sorted.size(); i = j) {
      for (j = i; j < sorted.size() && sorted[j]->name == sorted[i]->name;) j++;
      runs.emplace(sorted[i]->name, std::span(sorted).subspan(i, j - i));
    }
  }
  std::span<const T* const> Find(std::string_view name) const {
    auto found = runs.find(name);
    return found == runs.end() ? std::span<const T* const>() : found->second;
  }
};

// All vectors are sorted by oid and never change after loading: pointers into them stay valid.
struct Builtin {
  std::vector<TypeInfo> types;
  std::vector<ProcInfo> procs;
  std::vector<OperatorInfo> operators;
  std::vector<CastInfo> casts;  // by (source, target)
  std::vector<std::pair<Oid, OrderOperators>> orders;
  std::vector<Oid> args;
  NameIndex<TypeInfo> type_names;
  NameIndex<ProcInfo> proc_names;
  NameIndex<OperatorInfo> operator_names;
  std::unordered_set<std::string_view> keywords;
};

struct UserTypeSlot {
  TypeInfo info;
  std::string schema, name;
};

Builtin* builtin = nullptr;
std::unordered_map<Oid, std::unique_ptr<UserTypeSlot>>& UserTypes() {
  static auto* types = new std::unordered_map<Oid, std::unique_ptr<UserTypeSlot>>;
  return *types;
}

// Walks the lines of a tsv; fields are taken in order. The data is our own, so a malformed line is
// a bug.
class TsvReader {
 public:
  explicit TsvReader(std::string_view data) : rest_(data) {}
  bool Next() {
    if (rest_.empty()) return false;
    size_t end = rest_.find('\n');
    SLUICE_ASSERT(end != rest_.npos);
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }
  std::string_view Text() {
    size_t end = line_.find('\t');
    std::string_view field = line_.substr(0, end);
    line_.remove_prefix(end == line_.npos ? line_.size() : end + 1);
    return field;
  }
  char Char() { return Text()[0]; }
  bool Bool() { return Char() == 't'; }
  template <typename T = Oid>
  T Int() {
    std::string_view field = Text();
    T value = 0;
    auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
    SLUICE_ASSERT(failure == std::errc() && end == field.data() + field.size());
    return value;
  }

 private:
  std::string_view rest_, line_;
};

size_t LineCount(std::string_view data) {
  return std::count(data.begin(), data.end(), '\n');
}

void LoadTypes(Builtin* to) {
  to->types.reserve(LineCount(DATA(type)));
  for (TsvReader in(DATA(type)); in.Next();) {
    TypeInfo t;
    t.oid = in.Int();
    t.schema = "pg_catalog";
    t.name = in.Text();
    t.length = in.Int<int16_t>();
    t.kind = in.Char();
    t.category = in.Char();
    t.preferred = in.Bool();
    t.element = in.Int();
    t.array = in.Int();
    t.base = in.Int();
    t.collation = in.Int();
    to->types.push_back(t);
  }
}

void LoadProcs(Builtin* to) {
  std::vector<size_t> arg_starts;
  to->procs.reserve(LineCount(DATA(proc)));
  for (TsvReader in(DATA(proc)); in.Next();) {
    ProcInfo p;
    p.oid = in.Int();
    p.name = in.Text();
    p.kind = in.Char();
    p.result = in.Int();
    p.returns_set = in.Bool();
    p.strict = in.Bool();
    p.volatility = in.Char();
    p.variadic = in.Int();
    p.default_count = in.Int<uint16_t>();
    p.aggregate_kind = in.Char();
    p.direct_arg_count = in.Int<uint16_t>();
    arg_starts.push_back(to->args.size());
    for (std::string_view list = in.Text(); !list.empty();) {
      Oid arg = 0;
      auto parsed = std::from_chars(list.data(), list.data() + list.size(), arg);
      to->args.push_back(arg);
      list.remove_prefix(parsed.ptr - list.data());
      if (!list.empty()) list.remove_prefix(1);
    }
    to->procs.push_back(p);
  }
  arg_starts.push_back(to->args.size());
  for (size_t i = 0; i < to->procs.size(); i++)
    to->procs[i].args =
        std::span<const Oid>(to->args).subspan(arg_starts[i], arg_starts[i + 1] - arg_starts[i]);
}

void LoadOperators(Builtin* to) {
  to->operators.reserve(LineCount(DATA(operator)));
  for (TsvReader in(DATA(operator)); in.Next();) {
    OperatorInfo o;
    o.oid = in.Int();
    o.name = in.Text();
    o.left = in.Int();
    o.right = in.Int();
    o.result = in.Int();
    o.function = in.Int();
    o.commutator = in.Int();
    o.negator = in.Int();
    o.can_merge = in.Bool();
    o.can_hash = in.Bool();
    to->operators.push_back(o);
  }
}

void LoadCasts(Builtin* to) {
  to->casts.reserve(LineCount(DATA(cast)));
  for (TsvReader in(DATA(cast)); in.Next();) {
    CastInfo c;
    c.source = in.Int();
    c.target = in.Int();
    c.function = in.Int();
    c.context = in.Char();
    c.method = in.Char();
    to->casts.push_back(c);
  }
}

void LoadOrders(Builtin* to) {
  for (TsvReader in(DATA(amop_order)); in.Next();) {
    Oid type = in.Int();
    OrderOperators order;
    order.less = in.Int();
    order.equal = in.Int();
    order.greater = in.Int();
    to->orders.emplace_back(type, order);
  }
}

template <typename T>
const T* FindByOid(const std::vector<T>& sorted, Oid oid) {
  auto found = std::lower_bound(sorted.begin(), sorted.end(), oid,
                                [](const T& item, Oid wanted) { return item.oid < wanted; });
  return found != sorted.end() && found->oid == oid ? &*found : nullptr;
}

const Builtin& Data() {
  SLUICE_ASSERT(builtin != nullptr);
  return *builtin;
}

}  // namespace

void LoadBuiltinCatalog() {
  if (builtin != nullptr) return;
  auto loading = std::make_unique<Builtin>();
  LoadTypes(loading.get());
  LoadProcs(loading.get());
  LoadOperators(loading.get());
  LoadCasts(loading.get());
  LoadOrders(loading.get());
  for (TsvReader in(DATA(keyword)); in.Next();) loading->keywords.insert(in.Text());
  loading->type_names.Build(loading->types);
  loading->proc_names.Build(loading->procs);
  loading->operator_names.Build(loading->operators);
  builtin = loading.release();  // lives as long as the process
  LoadVirtualTables();
}

const TypeInfo* FindType(Oid oid) {
  if (oid < kFirstUserOid) return FindByOid(Data().types, oid);
  auto found = UserTypes().find(oid);
  return found == UserTypes().end() ? nullptr : &found->second->info;
}

const TypeInfo* FindType(std::string_view name) {
  auto run = Data().type_names.Find(name);
  return run.empty() ? nullptr : run[0];
}

const ProcInfo* FindProc(Oid oid) {
  return FindByOid(Data().procs, oid);
}
std::span<const ProcInfo* const> FindProcs(std::string_view name) {
  return Data().proc_names.Find(name);
}
const OperatorInfo* FindOperator(Oid oid) {
  return FindByOid(Data().operators, oid);
}
std::span<const OperatorInfo* const> FindOperators(std::string_view name) {
  return Data().operator_names.Find(name);
}

const CastInfo* FindCast(Oid source, Oid target) {
  const auto& casts = Data().casts;
  auto found = std::lower_bound(casts.begin(), casts.end(), std::pair(source, target),
                                [](const CastInfo& cast, const std::pair<Oid, Oid>& wanted) {
                                  return std::pair(cast.source, cast.target) < wanted;
                                });
  return found != casts.end() && found->source == source && found->target == target ? &*found
                                                                                    : nullptr;
}

namespace {

OrderOperators ExactOrderOperators(Oid type) {
  const auto& orders = Data().orders;
  auto found = std::lower_bound(orders.begin(), orders.end(), type,
                                [](const auto& entry, Oid wanted) { return entry.first < wanted; });
  return found != orders.end() && found->first == type ? found->second : OrderOperators{0, 0, 0};
}

}  // namespace

OrderOperators FindOrderOperators(Oid type) {
  const TypeInfo* info = FindType(type);
  while (info != nullptr && info->kind == 'd') info = FindType(info->base);
  if (info == nullptr) return {0, 0, 0};
  OrderOperators exact = ExactOrderOperators(info->oid);
  if (exact.less != 0) return exact;
  if (info->element != 0)
    return FindOrderOperators(info->element).less != 0 ? ExactOrderOperators(kAnyarrayOid)
                                                       : OrderOperators{0, 0, 0};
  switch (info->kind) {
    case 'e':
      return ExactOrderOperators(kAnyenumOid);
    case 'r':
      return ExactOrderOperators(kAnyrangeOid);
    case 'm':
      return ExactOrderOperators(4537);  // anymultirange
    case 'c':
      return ExactOrderOperators(kRecordOid);
  }
  // The operators of a type it is binary-coercible to; of several the preferred one of the
  // category.
  OrderOperators best{0, 0, 0};
  for (const CastInfo& cast : Data().casts) {
    if (cast.source != info->oid || cast.method != 'b' || cast.context != 'i') continue;
    OrderOperators order = ExactOrderOperators(cast.target);
    if (order.less != 0 && (best.less == 0 || FindType(cast.target)->preferred)) best = order;
  }
  return best;
}

void RegisterUserType(const TypeInfo& info) {
  SLUICE_ASSERT(info.oid >= kFirstUserOid);
  auto& slot = UserTypes()[info.oid];
  // Never freed or changed in place: plans of the running statement may hold a pointer.
  if (slot != nullptr && slot->name == info.name && slot->schema == info.schema) {
    slot->info = info;
  } else {
    static std::vector<std::unique_ptr<UserTypeSlot>> replaced;
    if (slot != nullptr) replaced.push_back(std::move(slot));
    slot = std::make_unique<UserTypeSlot>();
    slot->name = info.name;
    slot->schema = info.schema;
    slot->info = info;
  }
  slot->info.name = slot->name;
  slot->info.schema = slot->schema;
}

bool IsKeyword(std::string_view word) {
  return Data().keywords.contains(word);
}

}  // namespace sluice

#include "postmaster/sequence_kernels.h"

#include <map>
#include <memory>

#include "catalog/privilege.h"
#include "catalog/sequence_values.h"
#include "postmaster/object_names.h"
#include "postmaster/settings.h"

namespace sluice {

namespace {

// This session's, which is this process's.
struct SessionSequences {
  std::unique_ptr<SequenceValues> values;
  std::map<Oid, int64_t> last_values;
  Oid last_used = kInvalidOid;
};
SessionSequences session_sequences;

SequenceValues& Values() {
  if (session_sequences.values == nullptr)
    session_sequences.values = std::make_unique<SequenceValues>(
        CurrentCatalogSession().settings->Text("data_directory") + "/sequences");
  return *session_sequences.values;
}

const Sequence& SequenceOf(Oid oid) {
  const Catalog& catalog = *CurrentCatalogSession().catalog;
  auto found = catalog.sequences.find(oid);
  if (found != catalog.sequences.end()) return found->second;
  NamedObject object = FindClass(catalog, oid);
  if (object.oid == kInvalidOid)
    Throw(sqlstate::kUndefinedTable, "could not open relation with OID {}", oid);
  Throw(sqlstate::kWrongObjectType, "\"{}\" is not a sequence", object.name);
}

void RequireWritable(const char* function) {
  if (CurrentCatalogSession().settings->Boolean("transaction_read_only"))
    Throw(sqlstate::kReadOnlySqlTransaction, "cannot execute {} in a read-only transaction",
          function);
}

// Owners and those who were granted one of the privileges; an identity column's is used by whoever
// may insert.
void RequirePrivilege(const Sequence& sequence, std::string_view any_of) {
  const CatalogSession& session = CurrentCatalogSession();
  const Role* role = session.catalog->FindRole(session.user);
  if (sequence.identity || role == nullptr) return;
  for (char privilege : any_of)
    if (HasPrivilege(*session.catalog, *role, AclOf(sequence), privilege)) return;
  Throw(sqlstate::kInsufficientPrivilege, "permission denied for sequence {}", sequence.name);
}

void Remember(const Sequence& sequence, int64_t value) {
  session_sequences.last_values[sequence.oid] = value;
  session_sequences.last_used = sequence.oid;
}

void Nextval(const KernelCall& call) {
  RequireWritable("nextval()");
  std::vector<size_t> rows;
  ForEachRow(call, [&](size_t i) { rows.push_back(i); });
  for (size_t at = 0; at < rows.size();) {
    Oid oid = call.args[0]->At<uint32_t>(rows[at]);
    size_t end = at + 1;
    while (end < rows.size() && call.args[0]->At<uint32_t>(rows[end]) == oid) end++;
    const Sequence& sequence = SequenceOf(oid);
    RequirePrivilege(sequence, "Uw");
    while (at < end) {
      SequenceValues::Range range = Values().Next(sequence, static_cast<int64_t>(end - at));
      for (int64_t k = 0; k < range.count; k++)
        call.out->Data<int64_t>()[rows[at++]] = range.first + k * sequence.increment;
      Remember(sequence, range.first + (range.count - 1) * sequence.increment);
    }
  }
}

void Currval(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    const Sequence& sequence = SequenceOf(call.args[0]->At<uint32_t>(i));
    RequirePrivilege(sequence, "Ur");
    auto found = session_sequences.last_values.find(sequence.oid);
    if (found == session_sequences.last_values.end())
      Throw(sqlstate::kObjectNotInPrerequisiteState,
            "currval of sequence \"{}\" is not yet defined in this session", sequence.name);
    call.out->Data<int64_t>()[i] = found->second;
  });
}

void Lastval(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    Oid last = session_sequences.last_used;
    if (last == kInvalidOid || !CurrentCatalogSession().catalog->sequences.contains(last))
      Throw(sqlstate::kObjectNotInPrerequisiteState, "lastval is not yet defined in this session");
    call.out->Data<int64_t>()[i] = session_sequences.last_values.at(last);
  });
}

void Setval(const KernelCall& call) {
  RequireWritable("setval()");
  ForEachRow(call, [&](size_t i) {
    const Sequence& sequence = SequenceOf(call.args[0]->At<uint32_t>(i));
    RequirePrivilege(sequence, "w");
    int64_t value = call.args[1]->At<int64_t>(i);
    bool is_called = call.args.size() < 3 || call.args[2]->At<uint8_t>(i) != 0;
    if (value < sequence.min || value > sequence.max)
      Throw(sqlstate::kNumericValueOutOfRange,
            "setval: value {} is out of bounds for sequence \"{}\" ({}..{})", value, sequence.name,
            sequence.min, sequence.max);
    Values().Set(sequence, {value, is_called});
    if (is_called) session_sequences.last_values[sequence.oid] = value;
    call.out->Data<int64_t>()[i] = value;
  });
}

constexpr Kernel kKernels[] = {
    {1574, "nextval", true, Nextval}, {1575, "currval", true, Currval},
    {2559, "lastval", true, Lastval}, {1576, "setval", true, Setval},
    {1765, "setval", true, Setval},
};

}  // namespace

std::span<const Kernel> SequenceKernels() {
  return kKernels;
}

void ForgetSequences() {
  session_sequences.last_values.clear();
  session_sequences.last_used = kInvalidOid;
}

}  // namespace sluice

#include "postmaster/client_text.h"

#include "catalog/builtin.h"
#include "common/error.h"
#include "types/codec.h"

namespace sluice {

void AppendClientText(const Column& from, size_t row, const SessionSettings& settings,
                      std::string* out) {
  if (from.type != kRegtypeOid && from.type != kRegprocOid)
    return AppendText(from, row, settings, out);
  Oid oid = from.At<uint32_t>(row);
  if (oid == kInvalidOid) {
    *out += '-';
  } else if (from.type == kRegtypeOid && oid < kFirstUserOid && FindType(oid) != nullptr) {
    *out += FormatType(oid);
  } else if (const ProcInfo* proc = from.type == kRegprocOid ? FindProc(oid) : nullptr) {
    *out += proc->name;
  } else {
    Refuse("text of {} {}, which only a shard's catalog names, is not supported",
           from.type == kRegtypeOid ? "regtype" : "regproc", oid);
  }
}

}  // namespace sluice

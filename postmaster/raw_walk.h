// A walk over raw trees by protobuf's own description of them.
#pragma once

#include <cstdint>
#include <pg_query/pg_query.pb-c.h>

namespace sluice {

// Calls `visit` for every message of a tree, children after parents.
template <typename Visit>
void WalkRaw(ProtobufCMessage* message, Visit&& visit) {
  visit(message);
  const ProtobufCMessageDescriptor& descriptor = *message->descriptor;
  for (unsigned i = 0; i < descriptor.n_fields; i++) {
    const ProtobufCFieldDescriptor& field = descriptor.fields[i];
    if (field.type != PROTOBUF_C_TYPE_MESSAGE) continue;
    char* at = reinterpret_cast<char*>(message) + field.offset;
    char* count_at = reinterpret_cast<char*>(message) + field.quantifier_offset;
    if (field.label == PROTOBUF_C_LABEL_REPEATED) {
      size_t count = *reinterpret_cast<size_t*>(count_at);
      auto** children = *reinterpret_cast<ProtobufCMessage***>(at);
      for (size_t k = 0; k < count; k++) WalkRaw(children[k], visit);
      continue;
    }
    // Of a oneof only the member whose number is stored is there.
    bool oneof = (field.flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    if (oneof && *reinterpret_cast<uint32_t*>(count_at) != field.id) continue;
    auto* child = *reinterpret_cast<ProtobufCMessage**>(at);
    if (child != nullptr) WalkRaw(child, visit);
  }
}

}  // namespace sluice

// A walk over raw trees by protobuf's own description of them, so that no node kind can be
// forgotten.
#pragma once

#include <concepts>
#include <cstdint>
#include <pg_query/pg_query.pb-c.h>
#include <type_traits>

namespace sluice {

template <typename T>
concept RawMessage = std::same_as<std::remove_const_t<T>, ProtobufCMessage>;

// Calls `visit` for the messages that lie directly in `message`.
template <RawMessage Message, typename Visit>
void ForEachRawChild(Message* message, Visit&& visit) {
  const ProtobufCMessageDescriptor& descriptor = *message->descriptor;
  auto base = reinterpret_cast<uintptr_t>(message);
  for (unsigned i = 0; i < descriptor.n_fields; i++) {
    const ProtobufCFieldDescriptor& field = descriptor.fields[i];
    if (field.type != PROTOBUF_C_TYPE_MESSAGE) continue;
    if (field.label == PROTOBUF_C_LABEL_REPEATED) {
      size_t count = *reinterpret_cast<const size_t*>(base + field.quantifier_offset);
      auto children = *reinterpret_cast<Message* const* const*>(base + field.offset);
      for (size_t k = 0; k < count; k++) visit(children[k]);
      continue;
    }
    // Of a oneof only the member whose number is stored is there.
    bool oneof = (field.flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    if (oneof && *reinterpret_cast<const uint32_t*>(base + field.quantifier_offset) != field.id)
      continue;
    auto child = *reinterpret_cast<Message* const*>(base + field.offset);
    if (child != nullptr) visit(child);
  }
}

// Calls `visit` for every message of a tree, children after parents.
template <RawMessage Message, typename Visit>
void WalkRaw(Message* message, Visit&& visit) {
  visit(message);
  ForEachRawChild(message, [&](Message* child) { WalkRaw(child, visit); });
}

}  // namespace sluice

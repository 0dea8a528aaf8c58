// Names of the statements that are prepared on one connection, least recently used out first.
#pragma once

#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "shm/stream.h"

namespace sluice {

class StatementCache {
 public:
  explicit StatementCache(size_t size_max) : size_max_(size_max) {}

  // What a statement is known by: its text and its parameters' types.
  static std::string KeyOf(std::string_view sql, std::span<const StreamParam> params) {
    std::string key(sql);
    for (const StreamParam& param : params) {
      key.push_back('\0');
      key.append(reinterpret_cast<const char*>(&param.type), sizeof param.type);
    }
    return key;
  }

  // The name, or null. A find counts as a use.
  const std::string* Find(const std::string& key) {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    uses_.splice(uses_.begin(), uses_, found->second);
    return &found->second->name;
  }

  std::string NewName() { return "sluice_" + std::to_string(++counter_); }
  // The shard has it now. Returns the name of one to close in its place.
  std::optional<std::string> Insert(std::string key, std::string name) {
    Erase(key);
    uses_.push_front({key, std::move(name)});
    by_key_.emplace(std::move(key), uses_.begin());
    if (uses_.size() <= size_max_) return std::nullopt;
    std::string closed = std::move(uses_.back().name);
    by_key_.erase(uses_.back().key);
    uses_.pop_back();
    return closed;
  }
  // Where it is full: takes the least recently used out and returns its name.
  std::optional<std::string> MakeRoom() {
    if (uses_.size() < size_max_) return std::nullopt;
    std::string name = std::move(uses_.back().name);
    by_key_.erase(uses_.back().key);
    uses_.pop_back();
    return name;
  }
  void Erase(const std::string& key) {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    uses_.erase(found->second);
    by_key_.erase(found);
  }
  void Clear() {
    by_key_.clear();
    uses_.clear();
  }
  size_t size() const { return uses_.size(); }

  // Names to close with the next request.
  std::vector<std::string> to_close;

 private:
  struct Entry {
    std::string key, name;
  };
  const size_t size_max_;
  uint64_t counter_ = 0;
  std::list<Entry> uses_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace sluice

// A bump allocator. Blocks come from a BlockSource (the heap, or shared memory, see
// shm/query_arena.h); all is freed at once. Destructors are not run: put plain data here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice {

class BlockSource {
 public:
  struct Block {
    char* data;
    size_t size_bytes;
  };
  virtual ~BlockSource() = default;
  // A block of at least `size_bytes_min`; throws QueryError 53200 where there is none.
  virtual Block Acquire(size_t size_bytes_min) = 0;
  virtual void Release(Block block) = 0;
};

// The process's heap.
BlockSource& HeapBlocks();

class Arena {
 public:
  explicit Arena(BlockSource& source = HeapBlocks(), size_t block_size_bytes = 32 * 1024)
      : source_(source), block_size_bytes_(block_size_bytes) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  void* Allocate(size_t size_bytes, size_t alignment = alignof(std::max_align_t)) {
    uintptr_t at = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(alignment - 1);
    if (at + size_bytes > reinterpret_cast<uintptr_t>(end_))
      return AllocateSlow(size_bytes, alignment);
    next_ = reinterpret_cast<char*>(at + size_bytes);
    return reinterpret_cast<void*>(at);
  }

  template <typename T, typename... Args>
  T* New(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  // `count` elements, value-initialised.
  template <typename T>
  std::span<T> NewArray(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = static_cast<T*>(Allocate(sizeof(T) * count, alignof(T)));
    for (size_t i = 0; i < count; i++) new (first + i) T{};
    return {first, count};
  }

  // `count` elements, left as they are: the caller writes every one.
  template <typename T>
  T* NewRaw(size_t count) {
    return static_cast<T*>(Allocate(sizeof(T) * count, alignof(T)));
  }

  template <typename T>
  std::span<T> CopyArray(std::span<const T> from) {
    static_assert(std::is_trivially_copyable_v<T>);
    T* first = NewRaw<T>(from.size());
    if (!from.empty()) std::memcpy(static_cast<void*>(first), from.data(), from.size_bytes());
    return {first, from.size()};
  }
  template <typename T>
  std::span<T> CopyArray(const std::vector<T>& from) {
    return CopyArray(std::span<const T>(from));
  }

  std::string_view CopyString(std::string_view from) {
    char* to = static_cast<char*>(Allocate(from.size() + 1, 1));
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    to[from.size()] = 0;  // so that a C interface can read it
    return {to, from.size()};
  }

  // Frees all but one block, which later allocations use again.
  void Reset();
  size_t allocated_bytes() const { return allocated_bytes_; }

 private:
  void* AllocateSlow(size_t size_bytes, size_t alignment);

  BlockSource& source_;
  size_t block_size_bytes_;
  std::vector<BlockSource::Block> blocks_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  size_t allocated_bytes_ = 0;
};

}  // namespace sluice

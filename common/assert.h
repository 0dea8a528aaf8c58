// Asserts for what the program itself must keep true; they stay on in release builds. What a user
// or a peer can cause is an Error, never an assert.
#pragma once

namespace sluice {
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line);
}

#define SLUICE_ASSERT(condition)                                                                   \
  do {                                                                                             \
    if (__builtin_expect(!(condition), 0)) ::sluice::AssertFailed(#condition, __FILE__, __LINE__); \
  } while (0)

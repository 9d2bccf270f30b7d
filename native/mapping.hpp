// A file that is mapped into memory for reading, and pages of it that are given back.
//
// Pages that were read count as memory of the process until somebody says that they are not needed. They
// can always be read again, from the system's cache or from the file, so giving back too many does no harm.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace mm {

struct Mapping {
  std::span<const std::uint8_t> bytes;  // all of it; empty: nothing is mapped

  bool there() const { return !bytes.empty(); }

  // Give back the pages of an array, as far as they are in the mapping. (Memory of another kind would lose
  // what it holds, so nothing beyond it is touched.)
  template <class X>
  void release(const X* first, std::size_t n) const {
    if (!there() || first == nullptr || n == 0) return;
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    // Linux maps the pages around one that is read, if it has them: 16 of 4 KB, aligned, and where its cache holds
    // larger pieces (since 6.x) all of a piece, which is 2 MB at most.
    static const std::uintptr_t around = std::max(page, std::uintptr_t{1} << 21);
    const auto begin_of = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    const std::uintptr_t low = begin_of(bytes.data()), high = low + bytes.size();
    std::uintptr_t begin = begin_of(first), end = begin + n * sizeof(X);
    if (begin >= high || end <= low) return;
    begin = std::max(begin / around * around, low / page * page);  // the page of its first byte is mapped, too
    end = std::min((end + around - 1) / around * around, high);
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // advice: a refusal does no harm
  }
};

}  // namespace mm

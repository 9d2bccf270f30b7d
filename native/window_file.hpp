// A temporary file with a piece of bytes for each window, which may be written again with another size.
//
// The file has no name any more when it comes here: whatever happens to the process, nothing stays behind.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "common.hpp"

namespace mm {

class WindowFile {
 public:
  // The descriptor is duplicated; -1: no file, and nothing can be put.
  WindowFile(int descriptor, std::size_t windows) : places_(windows) {
    if (descriptor < 0) return;
    descriptor_ = ::dup(descriptor);
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "the temporary file of the planes");
  }
  WindowFile(const WindowFile&) = delete;
  WindowFile& operator=(const WindowFile&) = delete;
  ~WindowFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool there() const { return descriptor_ >= 0; }
  std::size_t bytes() const { return end_; }

  void put(std::size_t k, const std::vector<std::byte>& piece) {
    Place& place = places_[k];
    if (piece.size() > place.room) {  // to the end, with room to grow; the old place is lost
      place.at = end_;
      place.room = piece.size() + piece.size() / 4;
      end_ += place.room;
    }
    transfer(piece.size(), [&](std::size_t done) { return ::pwrite(descriptor_, piece.data() + done, piece.size() - done, off_t(place.at + done)); });
    place.size = piece.size();
  }

  std::vector<std::byte> get(std::size_t k) const {
    const Place& place = places_[k];
    std::vector<std::byte> piece(place.size);
    transfer(piece.size(), [&](std::size_t done) { return ::pread(descriptor_, piece.data() + done, piece.size() - done, off_t(place.at + done)); });
    return piece;
  }

 private:
  struct Place {
    std::size_t at = 0, size = 0, room = 0;
  };

  template <class Call>
  static void transfer(std::size_t size, Call&& call) {
    for (std::size_t done = 0; done < size;) {
      const ssize_t n = call(done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw std::system_error(n < 0 ? errno : EIO, std::generic_category(), "the temporary file of the planes");
      done += std::size_t(n);
    }
  }

  std::vector<Place> places_;
  std::size_t end_ = 0;
  int descriptor_ = -1;
};

}  // namespace mm

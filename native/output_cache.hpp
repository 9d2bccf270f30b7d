// The last few outputs that the oracle found for each example: Joachims, Finley and Yu's constraint
// cache. The best of them under another w costs a fraction of an oracle call.
#pragma once

#include "structure.hpp"

namespace mm {

template <class T>
class OutputCache {
 public:
  explicit OutputCache(const Structure<T>& structure) : structure_(structure), kept_(structure.n_examples()) {}

  using Workspace = typename Structure<T>::Workspace;

  // Put an output behind the others, or move it there; of more than `limit` the oldest goes.
  void remember(Workspace& ws, std::size_t i, CodeView code, std::size_t limit) {
    if (code.empty() || limit == 0) return;
    Kept& kept = kept_[i];
    const auto same = [&](const std::vector<Code>& other) { return std::ranges::equal(other, code); };
    const auto found = std::find_if(kept.codes.begin(), kept.codes.end(), same);
    if (found != kept.codes.end()) {
      std::rotate(found, found + 1, kept.codes.end());
      return;
    }
    kept.codes.emplace_back(code.begin(), code.end());
    if (kept.codes.size() <= limit) {
      structure_.index(ws, i, kept.codes.back(), kept.index);
      return;
    }
    kept.codes.erase(kept.codes.begin(), kept.codes.end() - std::ptrdiff_t(limit));
    const std::vector<CodeView> views(kept.codes.begin(), kept.codes.end());
    kept.index.clear();
    for (const CodeView view : views) structure_.index(ws, i, view, kept.index);
  }

  // The largest F of an example's outputs, at least the truth's 0; the output in `code`.
  double best(Workspace& ws, std::size_t i, const T* w, std::vector<Code>& code) const {
    code.clear();
    const Kept& kept = kept_[i];
    if (kept.codes.empty()) return 0.0;
    const std::vector<CodeView> views(kept.codes.begin(), kept.codes.end());
    std::vector<double> losses, F(views.size());
    for (const CodeView view : views) losses.push_back(structure_.loss(i, view));
    structure_.margins(ws, i, w, kept.index, views, losses, Structure<T>::Fresh::kNo, F.data());
    const auto top = std::max_element(F.begin(), F.end());
    if (!(*top > 0.0)) return 0.0;
    const CodeView view = views[std::size_t(top - F.begin())];
    code.assign(view.begin(), view.end());
    return *top;
  }

  void clear() { kept_.assign(kept_.size(), {}); }

  // All outputs, example after example, oldest first.
  struct Copy {
    std::vector<std::uint32_t> example, size;
    std::vector<Code> codes;
  };
  Copy copy() const {
    Copy copy;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      for (const auto& code : kept_[i].codes) {
        copy.example.push_back(std::uint32_t(i));
        copy.size.push_back(std::uint32_t(code.size()));
        copy.codes.insert(copy.codes.end(), code.begin(), code.end());
      }
    }
    return copy;
  }
  // Undo copy(), of a file that may be damaged.
  void restore(Workspace& ws, std::span<const std::uint32_t> example, std::span<const std::uint32_t> size, CodeView codes) {
    const auto check = [](bool ok) {
      if (!ok) throw BadInput("the checkpoint does not fit this problem: its cache is damaged");
    };
    check(example.size() == size.size());
    std::vector<CodeView> views;
    std::size_t at = 0;
    for (std::size_t k = 0; k < size.size(); ++k) {
      check(example[k] < kept_.size() && size[k] > 0 && size[k] <= codes.size() - at);
      views.push_back(codes.subspan(at, size[k]));
      check(structure_.valid(example[k], views.back()));
      at += size[k];
    }
    check(at == codes.size());
    clear();
    for (std::size_t k = 0; k < size.size(); ++k) remember(ws, example[k], views[k], ~std::size_t{0});
  }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const Kept& kept : kept_) {
      total += kept.index.capacity() * sizeof(Code);
      for (const auto& code : kept.codes) total += code.capacity() * sizeof(Code);
    }
    return total;
  }

 private:
  struct Kept {
    std::vector<std::vector<Code>> codes;  // oldest first
    std::vector<Code> index;               // the structure's, of all of them
  };
  const Structure<T>& structure_;
  std::vector<Kept> kept_;
};

}  // namespace mm

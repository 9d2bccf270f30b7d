// A part: the multipliers of one example over one place of its output.
//
// Where outputs differ from the truth in places that do not interact (for a chain: runs of tokens
// with at least one true token between them), the multipliers of an example are kept as a product
// of independent distributions, one part per place. Features and losses add up over the parts, so
// the dual is the same function of fewer variables: r places with m choices each need r m planes
// instead of m^r. Parts that come to touch are merged without moving w.
#pragma once

#include <limits>

#include "structure.hpp"
#include "working_set.hpp"

namespace mm {

template <class T>
struct Part {
  Extent extent;
  float violation = 0;      // max F - Σ α F at the last visit
  float stiffness = 1;      // curvature of the dual here, over that of its quadratic bound
  WorkingSet<T> set;        // planes, multipliers, Gram matrix
  std::vector<Code> index;  // the structure's digest of the planes
};

// All parts of one example, ascending and disjoint.
template <class T>
using Parts = std::vector<Part<T>>;

// Add the plane `code` with multiplier zero.
template <class T>
void add_plane(const Structure<T>& structure, typename Structure<T>::Workspace& ws, std::size_t i,
               Part<T>& part, CodeView code, std::vector<CodeView>& views,
               std::vector<double>& row) {
  part.set.views(views);
  views.push_back(code);
  row.resize(views.size());
  structure.gram(ws, i, code, views, row.data());
  part.set.add(code, structure.loss(i, code), row.data());
  structure.index(ws, i, code, part.index);
}

// Replace two neighbouring parts by one with the same marginals, hence the same w and loss. The
// north-west corner rule pairs the planes, so the joint part has at most m_a + m_b - 1 of them.
template <class T>
Part<T> merge(const Structure<T>& structure, typename Structure<T>::Workspace& ws, std::size_t i,
              const Part<T>& a, const Part<T>& b, std::vector<CodeView>& views,
              std::vector<double>& row) {
  Part<T> joint;
  joint.extent = {a.extent.lo, b.extent.hi};
  joint.violation = std::max(a.violation, b.violation);
  joint.stiffness = std::max(a.stiffness, b.stiffness);
  joint.set.start();
  joint.set.alpha()[0] = 0.0;
  std::vector<double> left(a.set.alpha(), a.set.alpha() + a.set.size());
  std::vector<double> right(b.set.alpha(), b.set.alpha() + b.set.size());
  std::vector<Code> code;
  for (std::size_t p = 0, q = 0; p < left.size() && q < right.size();) {
    const double mass = std::min(left[p], right[q]);
    if (mass > 0.0) {
      std::size_t k = 0;
      if (p != 0 || q != 0) {
        const CodeView ca = a.set.code(p), cb = b.set.code(q);
        code.assign(ca.begin(), ca.end());
        code.insert(code.end(), cb.begin(), cb.end());
        k = joint.set.find(code);
        if (k == joint.set.size()) add_plane(structure, ws, i, joint, code, views, row);
      }
      joint.set.alpha()[k] += mass;
    }
    left[p] -= mass;
    right[q] -= mass;
    // Rounding may leave the two sums a few ulps apart; the last of each takes what is left.
    if (left[p] <= right[q] && p + 1 < left.size()) {
      ++p;
    } else if (q + 1 < right.size()) {
      ++q;
    } else {
      ++p;
    }
  }
  return joint;
}

// Cut an output into pieces that do not interact, give each a part (merging those that it brings
// together) and add each part's share as a plane. Returns how many planes were new.
template <class T>
class PlaneRouter {
 public:
  std::size_t add(const Structure<T>& structure, typename Structure<T>::Workspace& ws,
                  std::size_t i, CodeView code, bool factored, Parts<T>& parts,
                  std::int64_t& merges) {
    pieces_.clear();
    for (CodeView rest = code; !rest.empty();) {
      const std::size_t n = factored ? structure.first_piece(rest) : rest.size();
      const CodeView piece = rest.first(n);
      rest = rest.subspan(n);
      const Extent extent = factored ? structure.extent(i, piece) : Extent{0, ~std::uint32_t{0}};
      pieces_.push_back({extent, piece});
      make_room(structure, ws, i, extent, parts, merges);
    }
    std::size_t added = 0, at = 0;
    for (Part<T>& part : parts) {
      plane_.clear();
      while (at < pieces_.size() && pieces_[at].first.meets(part.extent)) {
        plane_.insert(plane_.end(), pieces_[at].second.begin(), pieces_[at].second.end());
        ++at;
      }
      if (plane_.empty() || part.set.find(plane_) != part.set.size()) continue;
      add_plane(structure, ws, i, part, CodeView(plane_), views_, row_);
      part.violation = std::numeric_limits<float>::max();  // not known yet: to be visited
      ++added;
    }
    return added;
  }

 private:
  // One part that covers the extent.
  void make_room(const Structure<T>& structure, typename Structure<T>::Workspace& ws,
                 std::size_t i, Extent extent, Parts<T>& parts, std::int64_t& merges) {
    std::size_t a = 0;
    while (a < parts.size() && parts[a].extent.hi < extent.lo) ++a;
    if (a == parts.size() || !parts[a].extent.meets(extent)) {
      Part<T> fresh;
      fresh.extent = extent;
      fresh.set.start();
      parts.insert(parts.begin() + std::ptrdiff_t(a), std::move(fresh));
      return;
    }
    Part<T>& part = parts[a];
    part.extent = {std::min(part.extent.lo, extent.lo), std::max(part.extent.hi, extent.hi)};
    while (a + 1 < parts.size() && parts[a + 1].extent.meets(parts[a].extent)) {
      const Extent joint = {parts[a].extent.lo,
                            std::max(parts[a].extent.hi, parts[a + 1].extent.hi)};
      parts[a] = merge(structure, ws, i, parts[a], parts[a + 1], views_, row_);
      parts[a].extent = joint;
      parts.erase(parts.begin() + std::ptrdiff_t(a) + 1);
      ++merges;
    }
  }

  std::vector<std::pair<Extent, CodeView>> pieces_;
  std::vector<Code> plane_;
  std::vector<CodeView> views_;
  std::vector<double> row_;
};

}  // namespace mm

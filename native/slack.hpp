// The slack of one example at a w.
#pragma once

#include <cmath>

#include "formulation.hpp"

namespace mm {

// The slack of an example at w; for hard margins the smallest factor >= 1 by which w has all of its
// margins, infinite where no multiple has. (Dinkelbach's method: the factor that the worst output
// needs, until none needs more.)
template <class U>
double worst_slack(const Structure<U>& structure, typename Structure<U>::Workspace& ws, std::size_t i, const U* w,
                   Slack slack, double* unsure = nullptr) {
  const Found found = structure.oracle(ws, i, w);
  if (unsure != nullptr) *unsure = found.upper() - std::max(found.F, 0.0);
  if (slack != Slack::kHard) return found.upper();
  double factor = 1.0;
  for (Found f = found; !f.truth && f.F > 1e-12 * factor;) {
    const double loss = structure.loss(i, ws.code), margin = loss / factor - f.F;  // F is l / factor - w.Δf
    if (!(margin > 0.0)) return kInfinity;
    const double more = loss / margin;
    if (!(more > factor * (1.0 + 1e-12))) break;
    factor = more;
    ws.loss_scale = 1.0 / factor;
    f = structure.oracle(ws, i, w);
    ws.loss_scale = 1.0;
  }
  return factor;
}

}  // namespace mm

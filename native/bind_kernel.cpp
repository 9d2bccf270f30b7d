// Python bindings of chains with kernels.
#include "chain_problem.hpp"
#include "feature_kernel.hpp"
#include "data_hash.hpp"
#include "kernel_chain.hpp"

namespace mm {

using nb::literals::operator""_a;

namespace {

using Dense = std::optional<Array<double, 2>>;

KernelFunction kernel_function(const std::string& kind, double gamma, double coef0, int degree) {
  KernelFunction function;
  require(kind == "linear" || kind == "poly" || kind == "rbf", "the kernel must be \"linear\", \"poly\" or \"rbf\", got \"" + kind + "\"");
  require(std::isfinite(gamma) && gamma > 0.0, "gamma must be positive and finite, got " + std::to_string(gamma));
  require(std::isfinite(coef0), "coef0 must be finite, got " + std::to_string(coef0));
  require(degree >= 1, "degree must be at least 1, got " + std::to_string(degree));
  using Kind = KernelFunction::Kind;
  function.kind = kind == "linear" ? Kind::kLinear : kind == "poly" ? Kind::kPoly : Kind::kRbf;
  function.gamma = gamma;
  function.coef0 = coef0;
  function.degree = degree;
  return function;
}

// The features of tokens as Python has them, checked so that no kernel can read outside.
struct OwnedFeatures {
  TokenFeatures view;
  std::vector<nb::object> owners;

  OwnedFeatures(std::size_t n_sparse, std::optional<Array<std::int64_t>> indptr, std::optional<Array<std::uint32_t>> indices,
                std::optional<Array<float>> values, Dense dense, std::optional<Array<double>> values64) {
    require(indptr.has_value() == indices.has_value(), "indptr and indices go together");
    require(indptr || dense, "tokens need sparse features, dense features or both");
    view.n_sparse = n_sparse;
    if (indptr) {
      require(indptr->shape(0) >= 1, "indptr must have an entry more than there are tokens");
      view.indptr = {indptr->data(), indptr->shape(0)};
      view.indices = {indices->data(), indices->shape(0)};
      view.n = indptr->shape(0) - 1;
      require(view.indptr.front() == 0 && view.indptr.back() == std::int64_t(view.indices.size()), "indptr must run from 0 to the number of indices");
      for (std::size_t t = 0; t < view.n; ++t) {
        require(view.indptr[t] <= view.indptr[t + 1] && view.indptr[t + 1] <= view.indptr.back(), "indptr must not decrease");
        for (std::int64_t e = view.indptr[t]; e < view.indptr[t + 1]; ++e) {
          const std::uint32_t f = view.indices[std::size_t(e)];
          require(f < n_sparse && (e == view.indptr[t] || view.indices[std::size_t(e) - 1] < f), "feature ids of a token must be ascending and below the number of features");
        }
      }
      owners.push_back(nb::cast(*indptr));
      owners.push_back(nb::cast(*indices));
    }
    if (values) {
      require(indptr && values->shape(0) == view.indices.size(), "values and indices differ in length");
      view.values = values->data();
      owners.push_back(nb::cast(*values));
    }
    if (values64) {
      require(!values && indptr && values64->shape(0) == view.indices.size(), "values and indices differ in length");
      view.values64 = values64->data();
      owners.push_back(nb::cast(*values64));
    }
    if (dense) {
      require(!indptr || dense->shape(0) == view.n, "dense features must have one row per token");
      view.n = dense->shape(0);
      view.n_dense = dense->shape(1);
      view.dense = dense->data();
      owners.push_back(nb::cast(*dense));
    }
    require(view.n <= ~std::uint32_t{0}, "more tokens than the index type holds (2^32 - 1)");
  }
};

// A kernel as Python holds it.
class KernelHandle {
 public:
  virtual ~KernelHandle() = default;
  virtual const TokenKernel& kernel() const = 0;
};

class FeatureKernelHandle final : public KernelHandle {
 public:
  FeatureKernelHandle(const std::string& kind, double gamma, double coef0, int degree, std::size_t n_sparse,
                      std::optional<Array<std::int64_t>> indptr, std::optional<Array<std::uint32_t>> indices,
                      std::optional<Array<float>> values, Dense dense, std::optional<Array<double>> values64)
      : features_(n_sparse, indptr, indices, values, dense, values64),
        kernel_(kernel_function(kind, gamma, coef0, degree), features_.view, hash(kind, gamma, coef0, degree, features_.view)) {}
  const TokenKernel& kernel() const override { return kernel_; }

  nb::object rows_of(std::optional<Array<std::int64_t>> indptr, std::optional<Array<std::uint32_t>> indices,
                     std::optional<Array<float>> values, Dense dense, std::optional<Array<double>> values64) const {
    const OwnedFeatures others(features_.view.n_sparse, indptr, indices, values, dense, values64);
    require(others.view.n_dense == features_.view.n_dense && others.view.indptr.empty() == features_.view.indptr.empty(),
            "the tokens have other kinds of features than those of the kernel");
    std::vector<double> out(others.view.n * kernel_.size());
    {
      nb::gil_scoped_release release;
      kernel_.rows_of(others.view, out.data());
    }
    return to_numpy(std::move(out));
  }

 private:
  static std::uint64_t hash(const std::string& kind, double gamma, double coef0, int degree, const TokenFeatures& x) {
    DataHash hash(x.n);
    hash.mix(kind.data(), kind.size());
    hash.mix_number(gamma);
    hash.mix_number(coef0);
    hash.mix_number(degree);
    hash.mix(x.indptr.data(), x.indptr.size_bytes());
    hash.mix(x.indices.data(), x.indices.size_bytes());
    hash.mix(x.values, x.indices.size() * sizeof(float));
    hash.mix(x.values64, x.indices.size() * sizeof(double));
    hash.mix(x.dense, x.n * x.n_dense * sizeof(double));
    return hash.value();
  }

  OwnedFeatures features_;
  FeatureKernel kernel_;
};

class MatrixKernelHandle final : public KernelHandle {
 public:
  MatrixKernelHandle(Array<double, 2> matrix, Array<std::uint32_t> places)
      : owner_(nb::cast(matrix)), kernel_(matrix.data(), matrix.shape(1), checked(matrix, places), hash(matrix, places)) {}
  const TokenKernel& kernel() const override { return kernel_; }

 private:
  static std::vector<std::uint32_t> checked(const Array<double, 2>& matrix, const Array<std::uint32_t>& places) {
    require(matrix.shape(0) == matrix.shape(1), "the matrix of a kernel must be square");
    for (std::size_t t = 0; t < places.shape(0); ++t) require(places.data()[t] < matrix.shape(0), "a token is outside of the matrix of the kernel");
    return {places.data(), places.data() + places.shape(0)};
  }
  static std::uint64_t hash(const Array<double, 2>& matrix, const Array<std::uint32_t>& places) {
    DataHash hash(matrix.shape(0));
    hash.mix(matrix.data(), matrix.shape(0) * matrix.shape(1) * sizeof(double));
    hash.mix(places.data(), places.shape(0) * sizeof(std::uint32_t));
    return hash.value();
  }

  nb::object owner_;
  MatrixKernel kernel_;
};

// A user's function. The Python side (maxmargin.structures.kernels) checks what it returns.
class PythonKernel final : public TokenKernel {
 public:
  PythonKernel(nb::object block, std::size_t size) : block_(std::move(block)), size_(size), all_(size) {
    for (std::size_t t = 0; t < size; ++t) all_[t] = static_cast<std::uint32_t>(t);
  }
  std::size_t size() const override { return size_; }
  bool thread_safe() const override { return false; }
  std::uint64_t data_hash() const override { return 0; }

  void rows(Tokens which, double* out) const override { block(which, all_, out); }
  void block(Tokens first, Tokens second, double* out) const override {
    nb::gil_scoped_acquire gil;
    const auto ids = [](Tokens tokens) { return to_numpy(std::vector<std::uint32_t>(tokens.begin(), tokens.end())); };
    const nb::object found = block_(ids(first), ids(second));
    Array<double, 2> answer;
    require(nb::try_cast(found, answer), "a block of the kernel is no array of numbers with two dimensions");
    require(answer.shape(0) == first.size() && answer.shape(1) == second.size(), "a block of the kernel has the wrong shape");
    std::copy_n(answer.data(), first.size() * second.size(), out);
  }

 private:
  nb::object block_;
  std::size_t size_;
  std::vector<std::uint32_t> all_;
};

class PythonKernelHandle final : public KernelHandle {
 public:
  PythonKernelHandle(nb::object block, std::size_t size) : kernel_(std::move(block), size) {}
  const TokenKernel& kernel() const override { return kernel_; }

 private:
  PythonKernel kernel_;
};

// A chain of tokens that are their own features, joined with a kernel between them.
class KernelProblem final : public ProblemOf<KernelChain, ChainData, std::size_t> {
 public:
  KernelProblem(ChainProblem& chain, const KernelHandle& kernel, std::size_t cache_bytes)
      : ProblemOf(chain.data(), cache_bytes), base_(chain) {
    data_.kernel = &kernel.kernel();
    require(data_.n_sparse == data_.kernel->size(), "the chain has " + std::to_string(data_.n_sparse) + " tokens and the kernel " +
            std::to_string(data_.kernel->size()) + "; expected as many");
    const std::size_t tokens = std::size_t(data_.offsets.back());
    bool own = data_.indices.size() == tokens && data_.ones() && data_.n_dense == 0 && data_.n_pair == 0;
    for (std::size_t t = 0; own && t < tokens; ++t) own = data_.indptr[t] == std::int64_t(t);
    require(own, "each token of a chain with a kernel must have one feature, its number");
  }

  bool has_kernel() const override { return true; }
  std::uint64_t data_hash() const override {
    DataHash hash(base_.data_hash());
    hash.mix_number(data_.kernel->data_hash());
    return hash.value();
  }

 private:
  ChainProblem& base_;
};

nb::object block_of(const KernelHandle& self, Array<std::uint32_t> first, Array<std::uint32_t> second) {
  const auto checked = [&](const Array<std::uint32_t>& ids) -> TokenKernel::Tokens {
    for (std::size_t t = 0; t < ids.shape(0); ++t) require(ids.data()[t] < self.kernel().size(), "there is no such token");
    return {ids.data(), ids.shape(0)};
  };
  std::vector<double> out(first.shape(0) * second.shape(0));
  self.kernel().block(checked(first), checked(second), out.data());
  return to_numpy(std::move(out));
}

nb::object rows_of_handle(const KernelHandle& self, Array<std::uint32_t> which) {
  for (std::size_t t = 0; t < which.shape(0); ++t) require(which.data()[t] < self.kernel().size(), "there is no such token");
  std::vector<double> out(which.shape(0) * self.kernel().size());
  self.kernel().rows({which.data(), which.shape(0)}, out.data());
  return to_numpy(std::move(out));
}

}  // namespace

void bind_kernel(nb::module_& m) {
  nb::class_<KernelHandle>(m, "TokenKernel", "A kernel between distinct tokens.")
      .def_prop_ro("size", [](const KernelHandle& self) { return self.kernel().size(); })
      .def("rows", &rows_of_handle, "which"_a, "Rows of the matrix, one after the other.")
      .def("block", &block_of, "first"_a, "second"_a, "Entries of the matrix, row by row.");
  nb::class_<FeatureKernelHandle, KernelHandle>(m, "FeatureKernel")
      .def(nb::init<const std::string&, double, double, int, std::size_t, std::optional<Array<std::int64_t>>,
                    std::optional<Array<std::uint32_t>>, std::optional<Array<float>>, Dense, std::optional<Array<double>>>(),
           "kind"_a, "gamma"_a, "coef0"_a, "degree"_a, "n_sparse"_a, "indptr"_a = nb::none(), "indices"_a = nb::none(),
           "values"_a = nb::none(), "dense"_a = nb::none(), "values64"_a = nb::none())
      .def("rows_of", &FeatureKernelHandle::rows_of, "indptr"_a = nb::none(), "indices"_a = nb::none(), "values"_a = nb::none(),
           "dense"_a = nb::none(), "values64"_a = nb::none(), "Rows of other tokens against those of the kernel.");
  nb::class_<MatrixKernelHandle, KernelHandle>(m, "MatrixKernel")
      .def(nb::init<Array<double, 2>, Array<std::uint32_t>>(), "matrix"_a, "places"_a);
  nb::class_<PythonKernelHandle, KernelHandle>(m, "PythonKernel").def(nb::init<nb::object, std::size_t>(), "block"_a, "size"_a);
  nb::class_<KernelProblem, Problem>(m, "KernelProblem")
      .def(nb::init<ChainProblem&, const KernelHandle&, std::size_t>(), "chain"_a, "kernel"_a, "cache_bytes"_a,
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

}  // namespace mm

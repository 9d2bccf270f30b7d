# Every target sets itself up: it needs Python >= 3.11, a C++20 compiler and make, nothing else.
#   make demo PYTHON=python3.12      another interpreter
#   make test WORKERS=4              more test processes
#   make bench DATA=path             the real data sets (also MAXMARGIN_DATA)
#   make sanitize TESTS=tests/io     fewer tests under the sanitizers
#   make sanitize-threads THREAD_TESTS=tests/native/test_primal.py    other tests under that for threads
#   make wheel PYTHON=python3.12 TRY=python3.13    built with the one, tested with the other
#   make fuzz N=100 SEED=1           fewer and other inputs of each kind
#   make fuzz KIND=model ONLY=123    one input again; WRITE=file writes it instead

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
DATA    ?= $(or $(MAXMARGIN_DATA),../shared/data)
N       ?= 10000
SEED    ?= 0
TESTS   ?= tests/native tests/solvers tests/structures tests/features tests/io tests/constraints \
           tests/transductive tests/estimators/test_latent.py tests/estimators/test_online.py

BIN       := $(VENV)/bin
PIP       := $(BIN)/python -m pip --disable-pip-version-check --quiet
TOOLS     := $(VENV)/.maxmargin-tools
INSTALLED := $(VENV)/.maxmargin-installed
# Directories are listed too: a file that was removed changes its directory.
SOURCES   := pyproject.toml CMakeLists.txt README.md LICENSE \
             $(shell find native src -not -name '*.so' -not -path '*/__pycache__*')
# What pip is told for the build with sanitizers: Debug keeps the symbols that its reports name.
SANITIZED_BUILD := -C build-dir=build/sanitize -C cmake.build-type=Debug \
                   -C cmake.define.MAXMARGIN_SANITIZE=ON
THREADS_BUILD   := -C build-dir=build/sanitize-threads -C cmake.build-type=Debug \
                   -C cmake.define.MAXMARGIN_SANITIZE_THREADS=ON
# What runs in several threads, with two. (Tests of Ctrl-C hang there: signals come late under the sanitizer.)
THREAD_TESTS ?= tests/native/test_two_threads.py tests/native/test_joint_steps.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast sanitize sanitize-tests sanitize-threads sanitize-threads-tests fuzz bench docs lint stubs build wheel install clean

help: ## what the targets do
	@echo "maxmargin: large-margin learning of structured outputs"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(INSTALLED) ## read handwritten dates, a few seconds; a picture at the end
	@$(BIN)/maxmargin demo

test: lint $(INSTALLED) ## everything: lint, types, all tests (under 10 minutes on two cores)
	$(BIN)/python -m pytest -n $(WORKERS)

test-fast: $(INSTALLED) ## the quick tests (under a minute)
	$(BIN)/python -m pytest -n $(WORKERS) -q -m "not slow and not data"

# A build and an environment of its own, so that the ordinary ones stay as they are.
sanitize: ## the tests of the native code under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory sanitize-tests VENV=.venv-sanitize INSTALL_OPTIONS="$(SANITIZED_BUILD)"

sanitize-tests: $(INSTALLED)
	tools/sanitized.sh $(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=sanitize $(TESTS)
	tools/sanitized.sh $(BIN)/python tools/fuzz.py --count 200 --seed $(SEED) --jobs $(WORKERS)

sanitize-threads: ## the tests of what runs in several threads, under the thread sanitizer
	@$(MAKE) --no-print-directory sanitize-threads-tests VENV=.venv-sanitize-threads INSTALL_OPTIONS="$(THREADS_BUILD)"

sanitize-threads-tests: $(INSTALLED)
	tools/sanitized_threads.sh $(BIN)/python -m pytest -q -p no:cacheprovider --hypothesis-profile=sanitize -k "not ctrl_c" $(THREAD_TESTS)

fuzz: $(INSTALLED) ## mutated files of every kind, N of each (10000; some minutes)
	$(BIN)/python tools/fuzz.py --count $(N) --seed $(SEED) --jobs $(WORKERS) \
	  $(if $(KIND),--kind $(KIND)) $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))

bench: $(INSTALLED) ## the measured claims of the README; the peers take half an hour
	$(PIP) install parasail python-crfsuite vowpalwabbit
	$(BIN)/python benchmarks/sdm.py --data "$(DATA)"
	$(BIN)/python benchmarks/tagging.py --data "$(DATA)"
	$(BIN)/python benchmarks/serving.py --data "$(DATA)"
	$(BIN)/python benchmarks/choosing_c.py --data "$(DATA)" --limit 2000
	$(BIN)/python benchmarks/calibration.py --data "$(DATA)" --crfsuite
	$(BIN)/python benchmarks/sparse.py --data "$(DATA)"
	$(BIN)/python benchmarks/hard.py --data "$(DATA)"
	$(BIN)/python benchmarks/adaptation.py --data "$(DATA)"
	$(BIN)/python benchmarks/constraints.py --data "$(DATA)"
	$(BIN)/python benchmarks/table2.py --data "$(DATA)"
	$(BIN)/python benchmarks/table3.py --data "$(DATA)"
	$(BIN)/python benchmarks/ner_formulations.py --data "$(DATA)"
	$(BIN)/python benchmarks/classes.py --data "$(DATA)"
	$(BIN)/python benchmarks/taxonomy.py --data "$(DATA)"
	$(BIN)/python benchmarks/trees.py --data "$(DATA)"
	$(BIN)/python benchmarks/dependencies.py --data "$(DATA)"
	$(BIN)/python benchmarks/alignment.py --data "$(DATA)"
	$(BIN)/python benchmarks/peers.py --data "$(DATA)" --write docs/benchmarks.md

# Warnings are errors (-W), and so are references that are not found (-n). The source is the root, so that
# links between README.md and docs/ are those of a code host.
docs: $(INSTALLED) ## the documentation site, in build/site (strict: no broken link, no missing reference)
	$(BIN)/python -m sphinx -q -W --keep-going -n -E -b html -c docs -d build/doctrees . build/site
	@echo "build/site/index.html"

lint: $(INSTALLED) ## ruff, mypy, and whether the types of the native module are up to date
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/stubs.py --check

stubs: $(INSTALLED) ## write src/maxmargin/_native.pyi from the native module
	$(BIN)/python tools/stubs.py

build: $(TOOLS) ## a wheel and a source archive in dist/
	$(PIP) install build
	$(BIN)/python -m build --sdist --wheel --no-isolation

wheel: ## a wheel in dist/, installed into an empty environment and tested there
	$(PYTHON) tools/wheel.py --workers $(WORKERS) $(foreach python,$(TRY),--try $(python))

install: $(INSTALLED) ## the package and its development tools into .venv

# The package is installed as a user would have it, not in place: the tests see what is shipped.
$(INSTALLED): $(TOOLS) $(SOURCES)
	@echo "installing maxmargin into $(VENV)"
	@$(PIP) install --no-build-isolation $(INSTALL_OPTIONS) ".[dev]"
	@touch $@

# What pyproject.toml asks of a build machine, so that later builds are incremental.
$(TOOLS): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "maxmargin needs Python 3.11 or later and $(PYTHON) is not: make ... PYTHON=python3.12" >&2; exit 1; }
	@command -v "$${CXX:-c++}" > /dev/null || command -v g++ > /dev/null || command -v clang++ > /dev/null || { \
	  echo "no C++ compiler found (a package called g++ or clang, or set CXX)" >&2; exit 1; }
	@test -x $(BIN)/python || if $(PYTHON) -c 'import ensurepip, venv' 2> /dev/null; then \
	  $(PYTHON) -m venv $(VENV); \
	elif $(PYTHON) -c 'import virtualenv' 2> /dev/null; then \
	  $(PYTHON) -m virtualenv --quiet $(VENV); \
	else \
	  echo "$(PYTHON) cannot make virtual environments (no ensurepip): install the package" >&2; \
	  echo "python3-venv, or virtualenv, or name another interpreter: make ... PYTHON=..." >&2; exit 1; \
	fi
	@echo "installing build tools into $(VENV)"
	@$(PIP) install --upgrade pip
	@$(PIP) install cmake ninja $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

clean: ## remove everything that make made
	rm -rf $(VENV) .venv-sanitize .venv-sanitize-threads build dist maxmargin-demo.svg .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

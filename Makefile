# Everything runs from a checkout: `make demo` and `make test` set up what they need.
# PYTHON is only used to create the environment; it must be 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEEP := $(VENV)/.deep

.PHONY: help setup setup-deep demo test lint bench docs gallery clean

help:
	@echo "make demo    set up, run the demonstration, say where its picture and verdict are"
	@echo "make test    set up, run the tests and every example in the documentation"
	@echo "make lint    set up, run ruff and basedpyright"
	@echo "make bench   set up, measure the speed of the scales, the laws and the averages"
	@echo "make docs    set up, build the documentation into docs/_build/html"
	@echo "make gallery set up, draw the figures of the papers that have changed into docs/gallery, at reduced sizes"
	@echo "make setup   set up only: the pinned packages in $(VENV) (make setup-deep: and JAX, for overlaps.deep)"
	@echo "make clean   remove what the above have built"

setup: $(STAMP)

# The stamp is newer than both files exactly when the environment holds what they ask for.
$(STAMP): pyproject.toml requirements.lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "overlaps needs Python 3.11 or newer; pass one with: make PYTHON=python3.12 setup" >&2; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Deep networks need JAX, several hundred megabytes that the rest does without.
setup-deep: $(DEEP)

$(DEEP): $(STAMP) requirements.deep.lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.deep.lock.txt
	@touch $@

demo: setup
	rm -rf demo-output
	$(BIN)/overlaps demo --out demo-output

# One BLAS thread in one process per core: the matrices are small.
test: export OPENBLAS_NUM_THREADS := 1
test: setup-deep
	$(BIN)/python -m pytest -n auto

lint: setup-deep
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright

# One BLAS thread on both sides of every ratio.
bench: export OPENBLAS_NUM_THREADS := 1
bench: setup
	$(BIN)/python -m benchmarks

docs: setup-deep
	$(BIN)/sphinx-build -W --keep-going --quiet docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

# Each process has one BLAS thread, and there is one for each core.
gallery: export OPENBLAS_NUM_THREADS := 1
gallery: setup-deep
	$(BIN)/overlaps papers gallery --quick --out docs/gallery

clean:
	rm -rf $(VENV) docs/_build demo-output build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

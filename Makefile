# Everything runs from a checkout: `make demo` and `make test` set up what they need.
# PYTHON is only used to create the environment; it must be 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := requirements.lock.txt
DEV := requirements.dev.lock.txt
DEEP := requirements.deep.lock.txt
GOAL := $(or $(firstword $(MAKECMDGOALS)),help)
SETUP := .ci/setup $(VENV) "$(PYTHON)" $(GOAL)

.PHONY: help setup setup-deep setup-dev interpreter demo test lint bench torture fuzz coverage real docs gallery locks wheel numba clean

help:
	@echo "make demo    set up, run the demonstration, say where its picture and verdict are"
	@echo "make test    set up, run the tests and every example in the documentation"
	@echo "make lint    set up, run ruff and basedpyright"
	@echo "make bench   set up, measure the speed of the scales, the laws and the averages"
	@echo "make torture set up, kill sweeps, runs, verify and gallery 200 times at random, compare what comes out"
	@echo "make fuzz    set up, call every public function with input that has no business there, count, into docs/robustness.md"
	@echo "make coverage set up, count how often the truth lies within the stated error, into docs/accuracy.md"
	@echo "make real    set up, predict and train linear students and classifiers of real sets, into docs/real_*.md"
	@echo "make docs    set up, build the documentation into docs/_build/html"
	@echo "make gallery set up, draw the figures of the papers that have changed into docs/gallery, at the papers' sizes"
	@echo "make locks   set up, ask the package index whether the pinned packages install on each Python"
	@echo "make wheel   set up, build the wheel into dist, run it on its own as a user who may write nothing"
	@echo "make numba   set up, run tests with the oldest and the newest Numba that pyproject.toml allows"
	@echo "make setup   set up only: the pinned packages of demo and bench in $(VENV)"
	@echo "             (make setup-deep: and JAX, for overlaps.deep; make setup-dev: all, as test, lint and docs do)"
	@echo "make clean   remove what the above have built"

setup: $(VENV)/.runtime
setup-deep: $(VENV)/.deep
setup-dev: $(VENV)/.dev

# A stamp is newer than its files exactly when the environment holds what they ask for. The sizes are those of the folder;
# about a quarter of them is downloaded.
$(VENV)/.runtime: pyproject.toml $(RUNTIME) | interpreter
	@$(SETUP) "0.7 GB" $(RUNTIME)
	@touch $@

# Deep networks need JAX, which the rest does without.
$(VENV)/.deep: pyproject.toml $(RUNTIME) $(DEEP) | interpreter
	@$(SETUP) "1.1 GB" $(RUNTIME) $(DEEP)
	@touch $(VENV)/.runtime $@

# Tests, linters and documentation need all there is.
$(VENV)/.dev: pyproject.toml $(RUNTIME) $(DEEP) $(DEV) | interpreter
	@$(SETUP) "1.5 GB" $(RUNTIME) $(DEEP) $(DEV)
	@touch $(VENV)/.runtime $(VENV)/.deep $@

# An interpreter that is asked for is looked at even where the environment is there already.
interpreter:
ifeq ($(origin PYTHON),command line)
	@$(SETUP)
endif

demo: setup
	rm -rf demo-output
	$(BIN)/overlaps demo --out demo-output

# One BLAS thread in one process per core: the matrices are small.
test: export OPENBLAS_NUM_THREADS := 1
test: setup-dev
	@$(BIN)/python tests/browser.py
	$(BIN)/python -m pytest -n auto

lint: setup-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright

# One BLAS thread on both sides of every ratio.
bench: export OPENBLAS_NUM_THREADS := 1
bench: setup-dev
	$(BIN)/python -m benchmarks

torture: setup-dev
	$(BIN)/python -m benchmarks.torture --page docs/robustness.md

fuzz: export OPENBLAS_NUM_THREADS := 1
fuzz: setup-dev
	$(BIN)/python -m benchmarks.fuzz --page docs/robustness.md

# Each process has one BLAS thread, and there is one for each core.
coverage: export OPENBLAS_NUM_THREADS := 1
coverage: setup
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.fresh_rows

real: export OPENBLAS_NUM_THREADS := 1
real: setup-dev
	$(BIN)/python -m benchmarks.real_rows
	$(BIN)/python -m benchmarks.real_classes
	$(BIN)/python -m benchmarks.real_full_batch

docs: setup-dev
	$(BIN)/sphinx-build -W --keep-going --quiet docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

# Each process has one BLAS thread, and there is one for each core.
gallery: export OPENBLAS_NUM_THREADS := 1
gallery: setup-dev
	$(BIN)/overlaps papers gallery --out docs/gallery

locks: setup-dev
	$(BIN)/python .ci/locks

wheel: setup
	$(BIN)/python .ci/wheel

numba: export OPENBLAS_NUM_THREADS := 1
numba: setup-dev
	$(BIN)/python .ci/numba

clean:
	rm -rf $(VENV) docs/_build demo-output build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# The two main commands are `make book` (build the book) and `make test` (run the checks). Both set up .venv first.
SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
# `make book SOLUTIONS=no` and `make pdf SOLUTIONS=no` leave the solutions of the exercises out, for a course.
SOLUTIONS ?= yes
export FRHSIC_SOLUTIONS := $(SOLUTIONS)
# Small tensors on many threads are up to ninety times slower than on one.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# The tests start many processes: bytecode that is kept is compiled once, not in each of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup book test test-all portable mutants notebooks pdf slides serve lint format bench proofs wheel clean distclean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup:  ## set up .venv, or repair it
	@PYTHON=$(PYTHON) .ci/install

book: setup  ## build the book: _build/html/index.html (SOLUTIONS=no: without solutions)
	@rm -rf _build book/generated
	$(BIN)/jupyter-book build -W -n --keep-going .
	@test -f _build/html/index.html || { echo "The build wrote no _build/html/index.html. Check that the version of jupyter-book is below 2." >&2; exit 1; }
	@echo "The book is built: _build/html/index.html"

PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

test: setup  ## run the tests: library, doctests, pages, and notebooks against their stored outputs
	$(PYTEST) -m "not slow" tests frhsic_core --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg notebooks

test-all: test  ## run all tests: those of `make test`, then those that take long and rarely fail
	$(PYTEST) -m slow tests

portable: setup  ## run the numerical tests as an old, a middle and a new processor
	@JOBS=$(JOBS) .ci/portable

mutants: setup  ## change the library at random and count the changes that the tests notice (SEED=1 COUNT=120, PART=1/4)
	$(BIN)/python tests/mutants/run.py --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(PART),--part $(PART))

notebooks: setup  ## execute all notebooks and store their outputs
	$(BIN)/python book/_ext/run_notebooks.py --jobs $(JOBS)

pdf: setup  ## print the book to _build/book.pdf (needs chromium)
	$(BIN)/python book/_ext/print_book.py

slides: setup  ## make slides from the chapters: _build/slides/index.html
	$(BIN)/python book/_ext/make_slides.py

serve: book  ## serve the book on http://localhost:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

lint: setup  ## check the code with ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## time training and the statistics beside other libraries, into _build/bench
	$(BIN)/frhsic run cost_cpu --store _build/bench
	$(BIN)/frhsic run peers --store _build/bench

proofs:  ## check the formal proofs (needs Coq; prints how to install it)
	$(PYTHON) .ci/proofs

wheel: setup  ## build the wheel and the source archive under dist/
	$(BIN)/python -m build

clean:  ## remove build outputs
	rm -rf _build book/generated build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis conf.py
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean  ## remove build outputs and .venv
	rm -rf .venv

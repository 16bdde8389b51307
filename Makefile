# Two commands: `make book` (the book, built) and `make test` (everything checked). Both set up .venv first.
SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
# Small tensors on many threads are up to ninety times slower than on one.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.PHONY: help setup book test notebooks pdf serve lint format bench wheel clean distclean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

setup:  ## set up .venv (quick when it is there; mends a broken one)
	@PYTHON=$(PYTHON) .ci/install

book: setup  ## build the book and say where it lies
	@rm -rf _build
	$(BIN)/jupyter-book build -W -n --keep-going .
	@test -f _build/html/index.html || { echo "The build left no _build/html/index.html: is jupyter-book below version 2?" >&2; exit 1; }
	@echo "The book is built: _build/html/index.html"

test: setup  ## run all tests: library, doctests, notebooks against their stored outputs
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile tests frhsic_core \
	  --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg notebooks

notebooks: setup  ## execute every text notebook again and store its outputs
	$(BIN)/python book/_ext/run_notebooks.py --jobs $(JOBS)

pdf: setup  ## print the whole book: _build/book.pdf (needs chromium)
	$(BIN)/python book/_ext/print_book.py

serve: book  ## look at the book on http://localhost:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## let ruff tidy the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## print the benchmarks
	@for script in tests/benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

wheel: setup  ## build the wheel and the source archive under dist/
	$(BIN)/python -m build

clean:  ## remove what builds leave behind
	rm -rf _build build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis conf.py
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean  ## and the environment too
	rm -rf .venv

# Everything a reader or a contributor does; `make` alone lists it.
PYTHON ?= python3
JOBS ?= 2
EXECUTE ?=
SLOW ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTED := $(VENV)/.tested
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
LAB := .venv-lab
OLDEST := .venv-oldest
PEERS := .venv-peers
CHAPTERS = $(sort $(wildcard chapters/*.ipynb book/*.ipynb))
# the processes run side by side; threads within them would only get into each other's way
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# some images of Docker turn stored bytecode off: each of the kernels would compile numpy, pandas and scipy anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help environment book watch page live serve pdf test test-full test-slow test-oldest bench peers experiments notebooks lab lint planted measures archive lock clean distclean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo "  PYTHON=python3.12 chooses the interpreter (3.11 to 3.14), JOBS=4 the number of processes."

$(READY): requirements.txt pyproject.toml book/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || { \
	  echo "error: '$(PYTHON)' is not Python 3.11 to 3.14; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Installing requirements.txt into $(VENV), once …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --require-hashes -r requirements.txt
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation -e . -e book
	@touch $@

$(TESTED): locks/test.txt | $(READY)
	@echo "Installing locks/test.txt into $(VENV), once …"
	@$(BIN)/python $(PIP) --require-hashes -r locks/test.txt
	@touch $@

environment: $(TESTED)  ## install what is pinned into .venv, which every other target does by itself, as far as it needs it

book: $(if $(EXECUTE),$(TESTED),$(READY))  ## build the HTML from the stored outputs (EXECUTE=1: run every chapter)
	@$(ONE_THREAD) EXECUTE=$(EXECUTE) $(BIN)/python book/_tools/build.py --jobs $(JOBS)

watch: $(TESTED)  ## serve the pages, build again what is saved, and reload the browser
	$(ONE_THREAD) $(BIN)/python book/_tools/build.py --watch

page: $(READY)  ## build one page after an edit: make page CH=05, or CH=findings
	@$(ONE_THREAD) $(BIN)/python book/_tools/build.py --page $(CH)

live: $(READY)  ## after make book: let the cells of some pages run in the browser (RCPKG_PYODIDE=folder: from there)
	@$(BIN)/python book/_tools/live.py

serve: $(READY)  ## show the pages at http://127.0.0.1:8000, as live cells need
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

pdf: $(READY)  ## typeset the book from the stored outputs (MAINTAINING.md names what it needs of TeX)
	@for tool in latexmk xelatex makeindex rsvg-convert; do command -v $$tool >/dev/null || { \
	  echo "error: make pdf needs $$tool; MAINTAINING.md names the packages" >&2; exit 1; }; done
	$(ONE_THREAD) $(BIN)/jupyter-book build . --builder custom --custom-builder latex
	cd _build/latex && latexmk -xelatex -interaction=nonstopmode -silent book.tex
	@mkdir -p _build/pdf && cp _build/latex/book.pdf _build/latex/scorecard.csv _build/pdf/
	@echo "The book is at $(CURDIR)/_build/pdf/book.pdf"

test: $(TESTED) lint  ## run the tests, then every chapter against its stored outputs
	$(ONE_THREAD) $(BIN)/python -m pytest -p no:nbval -n $(JOBS) --dist loadscope --no-loadscope-reorder
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile \
	  -p warm_kernels --nbval --nbval-current-env --nbval-cell-timeout=120 --durations=10 $(CHAPTERS)

test-full: test test-slow  ## run the slow tests as well

test-slow: $(TESTED)  ## run the slow tests (RCPKG_BOOK=folder: on the pages of a book that is built)
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder -m slow $(SLOW)

# of the library: not the tests that need rcbook or the pinned environment
PINNED := architecture docstrings hostile_inputs installation package plotting typing
OLDEST_TESTS = $(filter-out $(PINNED:%=tests/rcpkg/test_%.py), \
  $(shell grep -rLE --include='test_*.py' '^(from|import) rcbook( |\.[a-z])' tests/rcpkg))

test-oldest: $(OLDEST)/.ready  ## run the estimators' tests and the live pages with the oldest packages that the metadata allow
	$(ONE_THREAD) PYTHONPATH=. $(OLDEST)/bin/python -m pytest -n $(JOBS) --dist loadfile -m "slow or not slow" $(OLDEST_TESTS)
	$(ONE_THREAD) PYTHONPATH=.:book $(OLDEST)/bin/python -m pytest -m slow -W default tests/rcbook/test_live_pages.py

$(OLDEST)/.ready: locks/oldest.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' || { \
	  echo "error: the oldest packages have wheels for Python 3.11 and 3.12; name one: make PYTHON=python3.11 ..." >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) --require-hashes -r locks/oldest.txt
	@touch $@

lint: $(TESTED)  ## check the code style
	$(BIN)/ruff check .

measures: $(TESTED)  ## print the measures of the library's code
	PYTHONPATH=tests/book $(BIN)/python book/_tools/measures.py

planted: $(TESTED)  ## plant errors by machine in the checks of parts I to III; fail if one passes unaccepted (CH=05: of one)
	$(ONE_THREAD) PYTHONPATH=.:book $(BIN)/python tests/book/planting.py $(CH)

bench: $(TESTED)  ## measure speed against scikit-learn (ratios of medians within one run)
	$(ONE_THREAD) $(BIN)/python -m pytest tests/benchmarks/bench_core.py -s

peers: $(PEERS)/.ready  ## compare with other libraries, in an environment beside the project's (needs RCPKG_DATA)
	$(ONE_THREAD) PYTHONPATH=.:book $(PEERS)/bin/python -m rcbook run \
	  study:beside-pyagrum study:rows-dask-ml study:beside-boosting-libraries study:other-boosting

$(PEERS)/.ready: locks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP) --require-hashes -r locks/peers.txt
	@touch $@

experiments: $(READY)  ## recompute the results tables (resumable; hours)
	$(ONE_THREAD) $(BIN)/python -m rcbook run --jobs $(JOBS)

notebooks: $(TESTED)  ## re-execute the chapters and store their outputs, normalised
	$(ONE_THREAD) $(BIN)/python book/_tools/notebooks.py $(CHAPTERS)

lab: $(READY) $(LAB)/.ready  ## open the chapters in JupyterLab, in an environment beside the project's
	$(LAB)/bin/jupyter lab --notebook-dir=chapters

# JupyterLab runs the chapters with the project's own Python, by a kernel that names it
$(LAB)/.ready: locks/lab.txt | $(READY)
	$(PYTHON) -m venv $(LAB)
	$(LAB)/bin/python $(PIP) --require-hashes -r locks/lab.txt
	$(BIN)/python -m ipykernel install --prefix $(LAB) --name python3 --display-name "Python 3 (rcpkg)"
	@touch $@

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  --no-emit-index-url --upgrade
PAPERS = --no-emit-package rcpkg pyproject.toml book/pyproject.toml

archive: $(READY)  ## write the release, built pages among it, to dist/ (after `make book`; the same bytes each time)
	$(BIN)/python book/_tools/archive.py

lock: $(TESTED)  ## resolve the environments anew, with hashes
	$(BIN)/python $(PIP) uv
	$(COMPILE) $(patsubst %,--extra %,plot build chapters html) $(PAPERS) -o requirements.txt
	$(COMPILE) --all-extras -c requirements.txt $(PAPERS) -o locks/test.txt
	echo jupyterlab | $(COMPILE) - -o locks/lab.txt
	printf '%s\n' pyagrum dask-ml joblib tqdm catboost lightgbm interpret-core | \
	  $(COMPILE) -c requirements.txt --extra parquet --extra dask pyproject.toml - \
	  -o locks/peers.txt
	$(COMPILE) --no-config --resolution lowest-direct --extra test --extra parquet --extra dask --extra plot pyproject.toml \
	  -o locks/oldest.txt

clean:  ## remove what was built
	rm -rf _build conf.py build dist *.egg-info book/build book/*.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean  ## remove the virtual environments too
	rm -rf $(VENV) $(LAB) $(OLDEST) $(PEERS)

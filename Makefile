# make race              makes the virtual environment, installs, trains every stage on the bundled MNIST subset
# make test              the tests that prove the product right, on a machine with nothing but Python and make
# make test-emulator     the tests of the CUDA emulator and of the lens
# make test-wide         all further tests: every wrong answer of the course, all combinations, browsers, documented commands
# make test-sanitized    the tests of stage 3 with its C under AddressSanitizer and UndefinedBehaviorSanitizer
# make lint              ruff and mypy
# make book              the book, from docs/ into docs/_build/html
# make book-pdf          the book as one PDF, docs/_build/groundup.pdf; it takes minutes, and needs Chromium
#
# PYTHON=python3.12 chooses the interpreter, VENV=folder where the environment goes; PROCESSES=8 how many processes run
# tests at once; TESTS=files what `make test` runs.

PYTHON ?= python3
VENV ?= .venv
PROCESSES ?= 2
# `make test-emulator` runs the emulator's own tests, `make test-wide` those in a browser.
TESTS ?= --ignore tests/cuda_emulator --ignore tests/browser
BIN := $(VENV)/bin
# Python compiles a module when it is first imported. Compiling all that is installed takes longer than installing it.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable
# pip before 21.3 installs nothing editable that has only a pyproject.toml, and before 22.3 has no --python, which a test uses.
NEW_PIP := $(BIN)/python -c 'import pip, sys; sys.exit(pip.__version__ < "22.3")' || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=22.3'

# The tests start hundreds of Python processes, which load what the first of them has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: race book book-pdf test test-emulator test-wide test-sanitized lint clean

race: $(VENV)/.installed
	$(BIN)/groundup race

book: $(VENV)/.installed-docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

book-pdf: book
	$(INSTALL) '.[pdf]'
	$(BIN)/python scripts/book_pdf.py

# Two test processes on two cores (with three, each takes more processor time than is won): one BLAS thread each, or they
# wait for one another. Each takes half of the tests, in order, so that tests which need the same compiled kernels meet
# in one process. A process that has finished takes tests over from the other. With -P pytest does not find groundup.egg-info
# in this folder, or it would rewrite the asserts of every file of the packages, which takes ten seconds.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -P -m pytest -n $(PROCESSES) --dist worksteal

test: $(VENV)/.installed-test
	$(PYTEST) $(TESTS)

test-emulator: $(VENV)/.installed-test
	$(PYTEST) tests/cuda_emulator

# What make test and make test-emulator leave out (tests/wide.py). The browsers' tests need chromium, and are skipped without it.
test-wide: $(VENV)/.installed-dev
	$(INSTALL) '.[compiler,docs,onnx,mpi,pdf]'
	GROUNDUP_EVERY_KERNEL=1 $(PYTEST) -m wide

test-sanitized: $(VENV)/.installed-test
	VENV=$(VENV) .ci/test-sanitized

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.created:
	"$(PYTHON)" -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	@$(NEW_PIP)
	$(INSTALL) '.[web]'
	touch $@

# Each has all of those before, so that one run of pip makes them.
$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	@$(NEW_PIP)
	$(INSTALL) '.[test]'
	touch $(VENV)/.installed $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml
	@$(NEW_PIP)
	$(INSTALL) '.[dev]'
	touch $(VENV)/.installed $(VENV)/.installed-test $@

$(VENV)/.installed-docs: $(VENV)/.installed pyproject.toml
	$(INSTALL) '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build runs *.egg-info

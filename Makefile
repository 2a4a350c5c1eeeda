# Every target creates the environment in .venv that it needs.
# All packages have wheels for Python 3.10 to 3.13; for later versions pip compiles PyBullet with a C++ compiler in minutes.
PYTHON ?= $(shell for v in 3.11 3.13 3.12 3.10 3; do command -v python$$v && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Suppress the warning of setuptools about folders with the names of the packages; README explains it.
# The byte code of a module is written when it is imported: for all modules it takes as long as their installation.
export PYTHONDONTWRITEBYTECODE =
INSTALL = PIP_COMPILE=0 PYTHONWARNINGS="ignore:Editable installation" $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test quick mutants published docs fuzz lint bench clean

run: $(VENV)/.run  ## follow the thesis' poses under computed torque and PD, side by side
	@echo "3 of 3: running pose_path (some 25 s, of which 19 s are for compiling once)"
	$(BIN)/irb-twin run pose_path --controller computed_torque pd --picture pose_path.png

# Several tests run at once, so BLAS uses one thread.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest

test: $(VENV)/.test  ## all tests; TESTS chooses files
	$(PYTEST) $(TESTS)

quick: $(VENV)/.test  ## all tests but those with the mark `slow`: for every save
	$(PYTEST) --quick -n 2 $(TESTS)  # collecting in more processes takes as long as they save

mutants: $(VENV)/.test  ## change lines of the product, and see a test fail for each; MUTANTS chooses some
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(MUTANTS)

published: $(VENV)/.test  ## compute every published number and equation, misprints first; ITEMS chooses some
	$(BIN)/python -m tests.published $(ITEMS)

docs: $(VENV)/.docs  ## build the documentation as offline web pages in docs/_build/html; TUTORIALS=see_the_arm_move executes one
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "open docs/_build/html/index.html"

SECONDS ?= 300
SEED ?= 1
fuzz: $(VENV)/.test  ## judge damaged files for SECONDS with SEED; print each fault with the command that repeats it
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) --workers 2

lint: $(VENV)/.lint  ## ruff and pyright
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

bench: $(VENV)/.bench  ## compare the speed with that of other libraries, in one run; BENCH=--short sees that each row runs
	$(BIN)/python -m tests.bench $(BENCH)

clean:  ## remove the environment and the files of the tools
	rm -rf $(VENV) build docs/_build *.egg-info .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@echo "1 of 3: creating the environment $(VENV) (once, some 8 s)"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip  # an old one may not resolve

$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo "2 of 3: installing irb-twin into $(VENV) (once, some 25 s)"
	$(INSTALL) --editable '.[abb]'
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(INSTALL) --editable '.[test]'
	touch $@

$(VENV)/.docs: $(VENV)/.run
	$(INSTALL) --editable '.[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.run
	$(INSTALL) --editable '.[bench]'
	touch $@

$(VENV)/.lint: $(VENV)/.run
	$(INSTALL) --editable '.[lint]'
	touch $@

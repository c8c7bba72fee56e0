# Everything works from a fresh clone; a second call installs nothing again.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e

.PHONY: run test check fuzz golden bench clean

run: .venv/.run  ## minimise the paper's 20-d Rosenbrock and draw it to demo.png
	$(BIN)/cylbo demo

test: .venv/.dev  ## all tests
	$(BIN)/python -m pytest -n logical --dist worksteal

check: .venv/.dev  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

SEEDS ?= 0 1 2 3
fuzz: .venv/.dev  ## 20,000 hostile calls
	$(BIN)/python tests/fuzz.py --calls 20000 --seed $(SEEDS) --progress

BASE ?= HEAD
golden: .venv/.dev  ## the points of every method in the working tree beside those of the commit BASE, to the last bit
	$(BIN)/python tests/golden.py compare $(BASE)

bench: .venv/.dev  ## seconds per suggestion beside BoTorch
	$(BIN)/python benchmarks/suggest.py

clean:
	rm -rf .venv demo.png

.venv/.made:
	$(PYTHON) -c 'import sys; sys.exit("cylbo needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	touch $@

.venv/.run: .venv/.made pyproject.toml constraints.txt src/cylbo/_version.py
	$(INSTALL) '.[plot]'
	touch $@

.venv/.dev: .venv/.made pyproject.toml constraints.txt src/cylbo/_version.py
	$(INSTALL) '.[dev]'
	touch $@ .venv/.run

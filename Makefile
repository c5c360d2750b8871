# treadle. A fresh Debian or Ubuntu with python3, git and make is enough for `make demo` and
# `make test`; whatever else they need, they install, and say so.

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

# Without this variable, Mesa complains in every process that looks for devices.
export XDG_RUNTIME_DIR ?= /tmp

.PHONY: help demo test announce-test test-full checks checks-and-parts parts lint format docs docs-serve site serve packages bench software-gpu browser-parts clean

help:
	@echo "make demo       install into $(VENV) and run the main job on every device present"
	@echo "make test       lint, documentation and tests, as for every change"
	@echo "make test-full  the same with long fuzzing, soaks and large sizes"
	@echo "make lint       ruff, mypy, import-linter; actionlint and zizmor for the workflows"
	@echo "make format     let ruff lay out the code"
	@echo "make docs       build the documentation into site/ (make docs-serve shows it)"
	@echo "make site       the documentation with its playground and notebooks (make serve shows it)"
	@echo "make packages   build the wheel and the sdist, and try each where nothing else is installed"
	@echo "make bench      measure against other libraries on this machine"
	@echo "make clean      remove what was built here, the environment included"

# One stamp for each set of extras: nothing is installed again until pyproject.toml changes.
$(VENV)/.installed-%: pyproject.toml tools/environment.sh
	@tools/environment.sh $(VENV) $(or $(EXTRAS),$*)
	@touch $@

$(VENV)/.installed-test: EXTRAS := test,docs

demo: $(VENV)/.installed-demo
	@$(BIN)/treadle demo

test: announce-test checks-and-parts
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

announce-test:
	@echo "treadle: lint, documentation and tests take about 20 minutes on 2 idle cores (JOBS=N uses more)," \
		"and up to 3 GB of disk with the environment and the software drivers." >&2

test-full: checks software-gpu browser-parts
	@$(BIN)/python -m pytest -n $(JOBS) -m "" --hypothesis-profile=full --timeout=3600

software-gpu: $(VENV)/.installed-test
	@tools/software_gpu.sh $(VENV)

browser-parts: $(VENV)/.installed-test
	@tools/browser_parts.sh $(VENV)

# Side by side: mypy and mkdocs each keep a core busy for twenty seconds.
checks: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory -j $(JOBS) lint docs

# With the checks, what the tests need is installed, which mostly waits for the network.
checks-and-parts: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory -j $$(($(JOBS) + 1)) lint docs parts

# One after the other: both ask the system's package manager, which serves one at a time.
parts: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory software-gpu
	@$(MAKE) --no-print-directory browser-parts

lint: $(VENV)/.installed-test
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "Run 'make format': ruff would lay out some files differently."; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/actionlint
	@$(BIN)/zizmor --offline --quiet --no-progress .github

format: $(VENV)/.installed-test
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

docs: $(VENV)/.installed-test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(VENV)/.installed-test
	@$(BIN)/mkdocs serve

site: docs browser-parts
	@$(BIN)/python -m tools.website.playground.build site
	@$(BIN)/python -m tools.website.notebooks.build site

serve: site
	@$(BIN)/python -m tools.website.serve site

packages: $(VENV)/.installed-test
	@PYTHON=$(BIN)/python tools/packages.sh dist
	@$(BIN)/python tools/try_packages.py dist

bench: $(VENV)/.installed-bench
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) site build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

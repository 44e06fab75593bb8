# Everything runs in .venv, which the first target that needs it makes: only Python 3.11+ with venv is assumed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv/.bench-ready
CLUSTERS_READY := .venv/.clusters-ready

# The tests start many processes: none need compile again what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check quick clusters bench mutants faults docs figures pack screenshots package clean

demo: $(READY)
	$(BIN)/lenience demo

test: check
	$(BIN)/pytest -n 3 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Fast tests, for work in progress: under a minute in one process. More processes would compile the kernels first.
QUICK := tests/core tests/data tests/files tests/objectives tests/policies/beliefs tests/test_public_api.py

quick: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pytest -q $(QUICK)

# A real local Spark (needs Java) and a real local Ray: large packages, which nothing else needs.
clusters: $(CLUSTERS_READY)
	$(BIN)/pytest -q tests/clusters

bench: $(BENCH_READY)
	$(BIN)/python -m benchmarks

# Make faults on purpose and see whether a test notices: see benchmarks/mutants.
mutants: $(READY)
	$(BIN)/python -m benchmarks.mutants --sample 150 --minutes 60

# Run the engine on a disk and a clock that fail on purpose: see tests/faults.
faults: $(READY)
	$(BIN)/python -m tests.faults --minutes 10 --processes 2

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(READY)
	$(BIN)/lenience plot values --output docs/figures/values.png
	$(BIN)/lenience plot thresholds --output docs/figures/thresholds.png
	$(BIN)/lenience plot characteristics --output docs/figures/characteristics.png
	$(BIN)/python -m research late-labels figures
	$(BIN)/python -m research fico-fairness
	$(BIN)/lenience plot regret --cost 0.6 --most 10000 --output docs/figures/regret.png
	$(BIN)/lenience paper --output docs/paper.md

package: $(READY)
	$(BIN)/python -m benchmarks.package

# The example of a documentation pack, and a picture of its first page.
pack: $(READY)
	$(BIN)/python docs/make_documentation_pack.py docs/examples

screenshots: $(READY)
	$(BIN)/python docs/make_screenshots.py docs/figures/dashboard

$(READY): pyproject.toml src/lenience/__about__.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(BENCH_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	touch $@

$(CLUSTERS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark,ray]'
	touch $@

clean:
	rm -rf .venv dist build site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis

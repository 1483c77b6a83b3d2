# Everything a newcomer or CI calls. `make help` lists the targets.

VENV := .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.ready
MADE_FROM := $(shell sh .ci/made-from .ci/setup 2>/dev/null)
WAS_MADE_FROM := $(shell cat $(STAMP) 2>/dev/null)
TESTS := tests/unit tests/plugin tests/golden tests/properties tests/native tests/integration
PROJECT_TESTS := tests/project tests/docs

.DEFAULT_GOAL := help
.PHONY: help setup baseline cpu_load msg_load cpu_limit ros2-setup ros2-baseline test test-project lab-test check bench foreign-traces scorecard runs fuzz acceptance docs-test pictures workflows platforms reference docs format clean changed look_again

help: ## List the targets
	@grep -hE '^[a-z0-9_-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*## "} {printf "  make %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## Install what is missing: system packages (apt), then .venv with everything else

# Again when what it is made from changed, or when something was missing that may be there now.
$(STAMP): $(if $(filter-out $(WAS_MADE_FROM),$(MADE_FROM)),changed) $(if $(wildcard $(VENV)/.missing),look_again)
	@sh .ci/setup $(VENV) $(filter changed,$^)

baseline: $(STAMP) ## Measure traced Panda reaches and compare them with the baseline
	@$(PYTHON) -m pytest -m baseline $(ARGS)

cpu_load: $(STAMP) ## The same under a load of CPU-bound processes
	@$(PYTHON) -m pytest -m cpu_load $(ARGS)

msg_load: $(STAMP) ## The same under a flood of 4000 messages a second
	@$(PYTHON) -m pytest -m msg_load $(ARGS)

cpu_limit: $(STAMP) ## The same on one CPU
	@$(PYTHON) -m pytest -m cpu_limit $(ARGS)

ros2-setup: ## Make .venv-ros2 of the ROS 2 that is sourced (the gate does; installs no packages)
	@sh .ci/ros2-setup --environment-only .venv-ros2

ros2-baseline: ## The baseline on real ROS 2: installs what is missing (Ubuntu 24.04), builds ros_ws, measures
	@sh .ci/ros2-setup .venv-ros2 -- python -m pytest -m baseline --ldos-stack=ros2 $(ARGS)

# Where the wheels cannot be had, the tests of real rcl are skipped with the reason.
$(VENV)/rcl/.ready: .ci/rcl tests/integration/rcl/tracetools.c | $(STAMP)
	@sh .ci/rcl $(PYTHON) $(VENV)/rcl

test: $(STAMP) $(VENV)/rcl/.ready ## Run the tests of this project, with short runs of the embedded stack (7 minutes on two idle CPUs)
	@sh .ci/test $(PYTHON) $(TESTS) -- $(ARGS)

test-project: $(STAMP) ## Test .ci, the lab, workflows, docs and benchmarks (CI runs it in parallel with `make test`)
	@sh .ci/test $(PYTHON) $(PROJECT_TESTS) -- $(ARGS)

lab-test: $(STAMP) ## Boot a machine, install the lab's runner on it, attack it (root; first time a few minutes)
	@$(PYTHON) -m pytest tests/lab -rs $(ARGS)

check: $(STAMP) ## Lint, types, the floors of the architecture, workflows and scripts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@sh .ci/lint-workflows

bench: $(STAMP) ## Measure the decoder and babeltrace2, a flood's rate, the overhead of the DDS latency and of the installed plugin, two readers
	@$(PYTHON) -m benchmarks.decoder $(ARGS)
	@$(PYTHON) -m benchmarks.kernel_states
	@$(PYTHON) -m benchmarks.windows
	@$(PYTHON) -m benchmarks.flood
	@$(PYTHON) -m benchmarks.latency
	@$(PYTHON) -m benchmarks.startup
	@$(PYTHON) -m benchmarks.fleet

foreign-traces: $(STAMP) ## Compare what we read of all traces below ARGS="DIRECTORY…" with what babeltrace2 reads
	@$(PYTHON) -m benchmarks.foreign_traces $(ARGS)

scorecard: $(STAMP) ## Compare the gate with other tools: false alarms and power, on recorded and simulated trials
	@$(PYTHON) -m benchmarks.scorecard.main $(ARGS)
	@$(PYTHON) -m benchmarks.scorecard.unjudgeable

runs: $(STAMP) ## Measure unchanged code, and append to the record that the gate ships with (35 minutes, alone)
	@$(PYTHON) -m benchmarks.unchanged_runs $(ARGS)

SECONDS ?= 60

fuzz: $(STAMP) ## Fuzz the decoder for SECONDS=60 (needs clang; says so)
	@$(PYTHON) -m tests.native.fuzz $(SECONDS)

acceptance: $(STAMP) ## Long proofs: equal runs, planted faults, kills, whole comparisons, the sanitizer of threads
	@$(PYTHON) -m pytest -m acceptance tests/acceptance $(TESTS) $(PROJECT_TESTS) -s --durations=25 $(ARGS)

platforms: $(STAMP) $(VENV)/rcl/.ready ## Run the tests of stacks on this platform, and record that on the page of platforms (sourced ROS 2 counts)
	@$(PYTHON) -m pytest -p tests.platforms --platforms docs/platforms.json tests/integration -rs $(ARGS); $(PYTHON) -m docs.generate

docs-test: $(STAMP) ## Run the commands of README, tutorials and how-to pages as they stand there (minutes: they measure)
	@$(PYTHON) -m pytest tests/docs -rs --durations=10 $(ARGS)

RESULTS ?= .ldos/pictures

pictures: $(STAMP) ## Measure what the pictures of README and docs show (12 minutes; RESULTS=FOLDER has it already), and draw them
	@$(PYTHON) -m benchmarks.pictures.measure $(RESULTS)
	@$(PYTHON) -m benchmarks.pictures.draw $(RESULTS) docs/pictures

workflows: $(STAMP) ## Run whole workflows by act, with GitHub's own actions below WORKFLOW_ACTIONS (says what is missing)
	@$(PYTHON) -m pytest tests/project/workflow_runs -rs $(ARGS)

reference: $(STAMP) ## Write the generated pages of docs again, from what reads the settings
	@$(PYTHON) -m docs.generate
	@$(PYTHON) -m tests.builders.event_table

docs: $(STAMP) ## Build the documentation in docs/_build/html, with warnings as errors
	@$(PYTHON) -m docs.figures
	@$(PYTHON) -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir docs/_build/doctrees docs docs/_build/html $(ARGS)

format: $(STAMP) ## Format the sources
	@$(VENV)/bin/ruff check --fix --quiet .
	@$(VENV)/bin/ruff format .

clean: ## Delete the environment and all build products (not .ldos, which holds results)
	rm -rf $(VENV) .venv-ros2 ros_ws/build ros_ws/install ros_ws/log build dist docs/_build docs/pictures/made .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Steerline. `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(HOME)/.local/bin:$(HOME)/.cargo/bin:$(PATH)
export UV_PYTHON_DOWNLOADS ?= never

PYTHON := contract controller appstation deploy tests
# The package of this machine's processor carries the program itself. Expanded after `setup`.
BUF = $(firstword $(wildcard $(CURDIR)/node_modules/@bufbuild/buf-linux-*/bin/buf))
# Where tests that make namespaces want to run; empty where we are root already.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E env PATH=$$PATH")

.PHONY: help setup demo test lint types fmt proto clean agent extension schemas measure

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: ## Install what is missing (names each thing and why); quick and silent when all is there
	@./deploy/setup.sh

agent: setup
	@cargo build --quiet --release --locked -p steerline-agent

extension: setup
	@npm run --silent build -w client-agent/extension >/dev/null

demo: setup agent extension ## The main job: a video starves on one line, and is rescued (about 8 minutes; OPTIONS=--show to watch)
	@$(SUDO) .venv/bin/steerline-testbed demo --out results/demo $(OPTIONS)

test: setup agent extension ## All tests: unit, laws, wire, real Redis, real Open vSwitch in namespaces
	@cargo test --quiet --locked --release --workspace
	@npm run --silent test -w client-agent/extension
	@$(SUDO) .venv/bin/python -m pytest -n 2 --dist loadfile

lint: setup ## Style and mistakes: ruff, buf, rustfmt, clippy, Biome, shellcheck
	@.venv/bin/ruff check $(PYTHON)
	@.venv/bin/ruff format --check $(PYTHON)
	@cd contract && $(BUF) lint && $(BUF) breaking --against image.binpb
	@cargo fmt --all --check
	@cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
	@npm run --silent lint -w client-agent/extension
	@shellcheck deploy/setup.sh contract/generate.sh .ci/run

types: setup ## Type checks: pyright, strict
	@.venv/bin/pyright

fmt: setup ## Format everything
	@.venv/bin/ruff check --fix --quiet $(PYTHON) || true
	@.venv/bin/ruff format --quiet $(PYTHON)
	@cd contract && $(BUF) format -w
	@cargo fmt --all
	@npm run --silent format -w client-agent/extension

proto: setup ## Generate code from contract/proto, and the image that guards the wire
	@contract/generate.sh
	@cd contract && $(BUF) build -o image.binpb

clean: ## Remove what was built and what dead runs left (results/ and caches outside stay)
	@[ ! -x .venv/bin/steerline-testbed ] || $(SUDO) .venv/bin/steerline-testbed clean
	@rm -rf .venv target node_modules .pytest_cache .ruff_cache .hypothesis .cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Every target sets up what it needs (a Python environment in .venv) and may be run on its own.
# FLEET=path picks another fleet file than inventory/lab.yaml; LIMIT=host,group some of its hosts; LAB_HOSTS=n the lab's size.
SHELL := /bin/bash
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export TINDERBOX_FLEET := $(or $(FLEET),$(TINDERBOX_FLEET))
# Without bytecode every process, each of pyinfra's among them, would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
LAB_HOSTS ?= 1
converge = python -m modules.converge $(if $(LIMIT),--limit "$(LIMIT)")
unit = pytest --quiet --numprocesses auto tests/unit tests/operations tests/recorded

.DEFAULT_GOAL := help
.PHONY: help setup demo converge drift status logs nightly nightly-off test test-unit test-long verify report disk remove adopt discover bootstrap plan check import lint format schema bench lab-up lab-down lab-clean lock

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

setup:
	@./setup.sh

demo: setup  ## the main job on a simulated Spark: lab, deploy, measured speed
	@python -m modules.lab up --hosts $(LAB_HOSTS)
	@$(converge)
	@python -m modules.reporting.table --try
	@echo "Take the lab down again: make lab-down"

discover: setup  ## find Sparks on this network; OUT=file writes a fleet file of them, never over one; USER=, INTERFACE=
	@python -m modules.discover $(if $(or $(OUT),$(FLEET)),--out "$(or $(OUT),$(FLEET))") $(if $(filter command line,$(origin USER)),--user "$(USER)") $(if $(INTERFACE),--interface "$(INTERFACE)")

bootstrap: setup  ## open hosts of which there is only a user and a password: your key, sudo, group docker
	@python -m modules.bootstrap $(if $(LIMIT),--limit "$(LIMIT)")

plan: setup  ## change nothing, contact no host: which services each host of FLEET gets, and their memory
	@python -m modules.fleet

check: setup  ## a verdict on each host of FLEET, and what a deploy would do there; changes nothing. JSON=1: as JSON
	@python -m modules.check $(if $(LIMIT),--limit "$(LIMIT)") $(if $(JSON),--json)

converge: setup  ## bring the fleet to what its fleet file says
	@$(converge)

drift: setup  ## change nothing, list what differs from the fleet file and exit 2; 3 when a host could not be looked at
	@$(converge) --drift

status: setup  ## how the hosts are now, on one screen; FLEET="one.yaml two.yaml", LIMIT=, WATCH=seconds
	@python -m modules.status $(FLEET) $(if $(LIMIT),--limit "$(LIMIT)") $(if $(WATCH),--watch $(WATCH))

logs: setup  ## what the services log, of all hosts by time; FOLLOW=1, SINCE=10m, SERVICE=, GREP=, LIMIT=
	@python -m modules.logs $(FLEET) $(if $(LIMIT),--limit "$(LIMIT)") $(if $(FOLLOW),--follow) $(if $(SINCE),--since "$(SINCE)") \
		$(if $(SERVICE),--service "$(SERVICE)") $(if $(GREP),--grep "$(GREP)")

nightly: setup  ## have this machine check drift and gate of FLEET every night; AT=, METRICS=folder, GATE=0, DEPLOY=
	@TINDERBOX_NIGHTLY_DEPLOY="$(DEPLOY)" TINDERBOX_NIGHTLY_AT="$(AT)" TINDERBOX_NIGHTLY_METRICS="$(METRICS)" TINDERBOX_NIGHTLY_GATE="$(or $(GATE),1)" \
		pyinfra @local deploys/nightly.py -y

nightly-off: setup  ## have it check that no more
	@TINDERBOX_NIGHTLY=off pyinfra @local deploys/nightly.py -y

report: setup  ## a page of the fleet in reports/, JSON, JUnit, Prometheus; SHARE=1: an anonymous block to post, too
	@python -m modules.reporting $(if $(LIMIT),--limit "$(LIMIT)") $(if $(SHARE),--share)

disk: setup  ## what uses the disks, and what would free how much; JSON=1; REPAIR=owner: give users what is root's in their caches
	@python -m modules.disk $(if $(LIMIT),--limit "$(LIMIT)") $(if $(JSON),--json) $(if $(REPAIR),--repair "$(REPAIR)")

remove: setup  ## LAYERS=engine,images,weights,system or all: what taking that back would do; CONSENT=1 does it
	@TINDERBOX_LAYERS="$(or $(LAYERS),$(error say which: LAYERS=engine,images,weights,system or all))" \
		python -m modules.converge deploys/remove.py $(if $(LIMIT),--limit "$(LIMIT)") $(if $(CONSENT),,--dry) || test $$? -eq 2 -a -z "$(CONSENT)"

verify: setup  ## the testinfra suite against the fleet
	@pytest tests/verify $(if $(LIMIT),--limit "$(LIMIT)")

test: setup  ## all tests (a lab is started and stopped)
	@$(unit)
	@pytest tests/lab -m "not long"

test-unit: setup  ## the tests that need no host
	@$(unit)

test-long: setup  ## the tests that take longer than make test allows
	@pytest tests/lab -m long

import: setup  ## RECIPE=file: a fleet file from a recipe of spark-vllm-docker, sparkrun or spark-pulse; OUT=file writes it
	@python -m modules.importer $(or $(RECIPE),$(error say which: RECIPE=file)) $(if $(OUT),--out $(OUT))

adopt: setup  ## servers that already run as a fleet file (OUT=file); TAKE=1: have FLEET's services take their places; CONSENT=1: unasked; UNDO=1: back
	@python -m modules.adopt $(if $(OUT),--out $(OUT)) $(if $(LIMIT),--limit "$(LIMIT)") $(if $(UNDO),--undo,$(if $(TAKE)$(CONSENT),--take)) $(if $(CONSENT),--consent)

lint: setup  ## ruff and mypy (hadolint is among the tests)
	@ruff check . && ruff format --check .
	@mypy .

format: setup  ## let ruff rewrite the code
	@ruff check --fix-only . && ruff format .

schema: setup  ## write inventory/fleet.schema.json
	@python -m modules.fleet.schema

bench: setup  ## measure against peers; ONLY=name runs one
	@python -m benchmarks $(if $(ONLY),--only $(ONLY))

lab-up: setup  ## start simulated Sparks (LAB_HOSTS=4 for four)
	@python -m modules.lab up --hosts $(LAB_HOSTS)

lab-down: setup  ## remove the lab: its hosts, with all that was deployed to them; the cached pieces stay
	@python -m modules.lab down

lab-clean: setup  ## as lab-down, and the cached pieces too
	@python -m modules.lab clean

lock: setup  ## renew requirements.lock
	@PATH="$$PATH:$(CURDIR)/.venv-uv/bin" uv pip compile --universal --generate-hashes --no-emit-index-url --group dev --group lab pyproject.toml -o requirements.lock -q

# Every way to build, test and try tortie. `make help` lists the targets.
#
# Nothing here needs more than Python 3.11, make, git and a POSIX shell with bash; packaging/bootstrap.sh installs the
# rest from requirements.lock into .venv, again only when that file or the interpreter changes.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
MACHINE := $(shell uname -m)
ARCH ?= $(or $(patsubst x86_64,amd64,$(filter x86_64,$(MACHINE))),$(patsubst aarch64,arm64,$(filter aarch64,$(MACHINE))),$(MACHINE))
BIN := bin/$(ARCH)
EXECUTABLE := dist/linux-$(ARCH)
PYTEST := $(VENV)/bin/python -m pytest
PYTEST_ARGS ?=
# Tests at once. A server that tests are given is one for all of them, so then they take turns.
WORKERS ?= $(if $(TORTIE_TEST_ETCD)$(TORTIE_TEST_KUBECONFIG),0,2)
PARALLEL := -n $(WORKERS) --dist
ETCD_ONLY := tests/integration/etcd $(wildcard tests/integration/contracts/test_etcd*.py)
# Load and kills are tried on etcd by tests/integration/faults, with fewer calls than an embedded datastore stands.
UT_ETCD := tests/integration/plugin tests/integration/pods $(ETCD_ONLY) $(patsubst %,--ignore=tests/integration/plugin/%,test_concurrency.py test_soak.py)
KUBERNETES_ONLY := tests/integration/apiserver tests/integration/pods $(wildcard tests/integration/*/test_kube*.py)
UT_KDD := $(sort $(KUBERNETES_ONLY)) $(addprefix tests/integration/plugin/,test_ipam_plugin.py test_ipam_cases.py)
# Virtual machines: the tests about them, and what of the contracts is.
MACHINES := $(wildcard tests/integration/kubevirt)
UT_KUBEVIRT := $(MACHINES) $(addprefix tests/integration/contracts/test_kubernetes_,\
  ipam_library.py::TestOwnerAttributes ipam_library.py::TestPromotion datastore.py::TestCluster)

# All but the library transports, which the executable refuses.
UT_DIST := tests/integration/dist tests/integration/plugin tests/integration/bridge \
  --deselect 'tests/integration/bridge/test_bridge_plugin.py::test_on_either_netlink_transport[library]'

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all help bootstrap build install unit mutants simulate soak lint integration interop ut ut-etcd ut-kdd ut-kubevirt ut-dist dist demo test bench bench-dist lock proto clean

all: build unit  ## build, then run the unit tests (this is plain `make`)

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | \
	  awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: build  ## network two containers, ping, break a route, clean up (root)
	@packaging/bootstrap.sh tools "make demo"
	@$(VENV)/bin/python packaging/demo.py

test:  ## everything: build, lint, unit, mutants, integration, ut-etcd, ut-kdd, ut-kubevirt, demo (root)
	@packaging/check.sh

unit: bootstrap  ## unit tests, with the branch coverage that domain and ports must have
	$(PYTEST) tests/unit $(PARALLEL) worksteal --cov --cov-report=term $(PYTEST_ARGS)

mutants: bootstrap  ## break the allocation code on purpose, and require that random schedules notice
	$(PYTEST) tests/mutants $(PARALLEL) worksteal $(PYTEST_ARGS)

N ?= 10000
SEED ?= 0
simulate: bootstrap  ## N random schedules of IPAM calls from SEED on, reproducible (N=10000 SEED=0)
	$(VENV)/bin/python tests/simulate.py --runs $(N) --seed $(SEED)

soak: build  ## 8 processes of 200 calls each, some of them killed, three times over (root)
	@packaging/bootstrap.sh tools "make soak"
	TORTIE_SOAK=200 TORTIE_BIN=$(abspath $(BIN)) $(PYTEST) tests/integration/plugin/test_soak.py -o timeout=1800 $(PYTEST_ARGS)

integration: build  ## tests on the real kernel and real processes, but for those of ut and ut-dist (root)
	@packaging/bootstrap.sh tools "make integration"
	TORTIE_BIN=$(abspath $(BIN)) $(PYTEST) $(PARALLEL) loadfile tests/integration $(patsubst %,--ignore=%,$(ETCD_ONLY) $(KUBERNETES_ONLY) $(MACHINES) tests/integration/dist) $(PYTEST_ARGS)

ut-dist: dist  ## the self-contained executable: alone in an empty root, and through the plugins' tests (root)
	@packaging/bootstrap.sh tools "make ut-dist"
	TORTIE_BIN=$(abspath $(EXECUTABLE)) $(PYTEST) $(PARALLEL) loadfile $(UT_DIST) $(PYTEST_ARGS)

ut: ut-etcd ut-kdd ut-kubevirt  ## the three matrices (root)

ut-etcd: build  ## the plugins' tests, and the datastore's own, on a real etcd; pods from a real API server (root)
	@packaging/bootstrap.sh kubernetes "make ut-etcd"
	TORTIE_TEST_STORE=etcd TORTIE_BIN=$(abspath $(BIN)) $(PYTEST) $(PARALLEL) loadfile $(UT_ETCD) $(PYTEST_ARGS)

ut-kdd: build  ## everything of theirs with Kubernetes as the datastore, in both API groups, on a real API server (root)
	@packaging/bootstrap.sh kubernetes "make ut-kdd"
	TORTIE_TEST_STORE=kubernetes TORTIE_BIN=$(abspath $(BIN)) $(PYTEST) $(PARALLEL) loadfile $(UT_KDD) $(PYTEST_ARGS)

ut-kubevirt: build  ## virtual machines, with Kubernetes as the datastore, in both API groups, on a real API server (root)
	@packaging/bootstrap.sh kubernetes "make ut-kubevirt"
	TORTIE_TEST_STORE=kubernetes TORTIE_BIN=$(abspath $(BIN)) $(PYTEST) $(PARALLEL) loadfile $(UT_KUBEVIRT) $(PYTEST_ARGS)

PEER ?=
interop: build  ## share an etcd, and a cluster, with the original: PEER=folder of its calico and calico-ipam (root)
	@[ -n "$(PEER)" ] || { echo "INTEROP NOT RUN: say where the original is, make interop PEER=<folder of its calico and calico-ipam>" >&2; exit 2; }
	@packaging/bootstrap.sh kubernetes "make interop"
	TORTIE_BIN=$(abspath $(BIN)) TORTIE_PEER=$(abspath $(PEER)) $(PYTEST) tests/interop $(PYTEST_ARGS)

lint: bootstrap  ## formatting, lint, types, import rules
	@failed=; for check in "ruff format --check ." "ruff check ." "mypy" "mypy $(wildcard packaging/*.py)" "lint-imports"; do \
	  echo "$$check"; $(VENV)/bin/$$check || failed="$$failed, $$check"; \
	done; [ -z "$$failed" ] || { echo "lint FAILED:$${failed#,}"; exit 1; }

build: bootstrap  ## fill bin/$ARCH with calico, calico-ipam and tortie
	@$(VENV)/bin/python packaging/bundle.py build --lock requirements.lock $(BIN)

dist: bootstrap  ## fill dist/linux-$ARCH with the self-contained executable (the first time: several minutes)
	@packaging/bootstrap.sh compiler "make dist"
	@$(VENV)/bin/python packaging/dist.py $(EXECUTABLE)

DIST ?=
install: $(if $(DIST),dist,build)  ## copy them to $DESTDIR/opt/cni/bin (DIST=1: the one of `make dist`; BRIDGE=1: also as `bridge`)
	@$(VENV)/bin/python packaging/bundle.py install $(if $(DIST),$(EXECUTABLE),$(BIN)) "$(DESTDIR)/opt/cni/bin" $(if $(BRIDGE),--also bridge)

bench: build  ## time cold starts beside a bare interpreter; with root, ADD and DEL too
	@$(VENV)/bin/python packaging/bench.py --bin $(BIN)

bench-dist: build dist  ## time the self-contained executable beside the bundle (root)
	@$(VENV)/bin/python packaging/bench_dist.py --executable $(EXECUTABLE) --bundle $(BIN)

lock:  ## choose the newest allowed dependencies and write requirements.lock
	@packaging/lock.sh

proto:  ## make the gRPC message classes anew from adapters/*/*.proto
	@packaging/proto.sh

clean:  ## remove what the other targets made
	rm -rf bin build dist .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

bootstrap:
	@PYTHON="$(PYTHON)" packaging/bootstrap.sh venv

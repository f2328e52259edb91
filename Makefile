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
# Tests at once. Those on servers and the kernel wait for half of their time and more, so they are more than CI has
# processors; each of kdd's brings an API server, so there they are fewer. A server that tests are given is one for all
# of them, so then they take turns.
WORKERS ?= $(if $(TORTIE_TEST_ETCD)$(TORTIE_TEST_KUBECONFIG),0)
PARALLEL = -n $(or $(WORKERS),$(if $(filter ut-kdd ut-kubevirt,$@),4,5)) --dist
COMPUTING := -n 2 --dist worksteal
ETCD_ONLY := tests/integration/etcd $(wildcard tests/integration/contracts/test_etcd*.py)
# On an etcd of its own whatever the others are on, so once is enough.
OWN_ETCD := tests/integration/plugin/test_etcd_connection_cases.py
# Load and kills are tried on etcd by tests/integration/faults, with fewer calls than an embedded datastore stands.
UT_ETCD := tests/integration/plugin tests/integration/pods $(ETCD_ONLY) $(patsubst %,--ignore=tests/integration/plugin/%,test_concurrency.py test_soak.py)
KUBERNETES_ONLY := tests/integration/apiserver tests/integration/pods $(wildcard tests/integration/*/test_kube*.py)
UT_KDD := $(sort $(KUBERNETES_ONLY)) $(addprefix tests/integration/plugin/,test_ipam_plugin.py test_ipam_cases.py)
# Virtual machines: the tests about them, and what of the contracts is.
MACHINES := $(wildcard tests/integration/kubevirt)
RUNTIMES := tests/integration/runtimes
UT_KUBEVIRT := $(MACHINES) $(addprefix tests/integration/contracts/test_kubernetes_,\
  ipam_library.py::TestOwnerAttributes ipam_library.py::TestPromotion datastore.py::TestCluster)

# What is tested: the bundle, or with SUBJECT=dist the self-contained executable, or what is in TORTIE_BIN as it is.
SUBJECT ?= build
MADE := $(if $(TORTIE_BIN),bootstrap,$(SUBJECT))
TESTED := $(abspath $(or $(TORTIE_BIN),$(if $(filter dist,$(SUBJECT)),$(EXECUTABLE),$(BIN))))
OF_EXECUTABLE := tests/integration/dist tests/integration/install
ONLY_DIST := $(if $(filter dist,$(SUBJECT)),$(OF_EXECUTABLE))
TRY = TORTIE_BIN=$(TESTED) $(PYTEST) $(PARALLEL) loadfile
UT_EMBEDDED := $(ONLY_DIST) tests/integration/plugin tests/integration/bridge
# What shows each kind of transport at work, for the bundle to run on both: netlink, etcd, Kubernetes, gRPC.
TRANSPORTS := lean library
UT_TRANSPORTS := tests/integration/pods/test_pods_golden.py \
  tests/integration/bridge/test_bridge_plugin.py::test_on_either_netlink_transport \
  $(patsubst %,tests/integration/plugin/test_%.py,golden_replay network_plugin grpc_dataplane killed_leaves_no_file)
UT_TRANSPORTS_KDD := tests/integration/pods/test_pods_golden.py tests/integration/kubevirt/test_machines_golden.py

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all help bootstrap build install unit fuzz mutants simulate soak lint integration interop ut ut-etcd ut-kdd ut-kubevirt ut-embedded ut-transports ut-all runtimes cluster chaos tested dist windows image release man demo test bench site documents keys pictures behaviours lock manifests proto clean

all: build unit  ## build, then run the unit tests (this is plain `make`)

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | \
	  awk -F'\t' '{ printf "  make %-14s %s\n", $$1, $$2 }'

demo: build  ## network two containers, ping, break a route, clean up (root)
	@packaging/bootstrap.sh tools "make demo"
	@$(VENV)/bin/python packaging/demo.py

test:  ## everything: build, lint, unit, fuzz, mutants, integration, ut-etcd, ut-kdd, ut-kubevirt, demo (root)
	@packaging/check.sh

unit: bootstrap  ## unit tests, with the branch coverage that domain and ports must have
	$(PYTEST) tests/unit $(COMPUTING) --cov --cov-report=term $(PYTEST_ARGS)

MINUTES ?= 1
TARGET ?=
fuzz: bootstrap  ## give odd octets to every parser that meets foreign ones, MINUTES each (MINUTES=5 TARGET=http2,hpack FUZZ_ARGS=--keep)
	@PYTHON="$(PYTHON)" packaging/bootstrap.sh fuzz
	$(VENV)/bin/python tests/fuzz/run.py --minutes $(MINUTES) --target "$(TARGET)" $(FUZZ_ARGS)

mutants: bootstrap  ## break the allocation code on purpose, and require that random schedules notice
	$(PYTEST) tests/mutants $(COMPUTING) $(PYTEST_ARGS)

N ?= 10000
SEED ?= 0
simulate: bootstrap  ## N random schedules of IPAM calls from SEED on, reproducible (N=10000 SEED=0)
	$(VENV)/bin/python tests/worlds/simulate.py --runs $(N) --seed $(SEED)

soak: build  ## 8 processes of 200 calls each, some of them killed, three times over (root)
	@packaging/bootstrap.sh tools "make soak"
	TORTIE_SOAK=200 TORTIE_BIN=$(abspath $(BIN)) $(PYTEST) tests/integration/plugin/test_soak.py -o timeout=1800 $(PYTEST_ARGS)

integration: $(MADE)  ## tests on the real kernel and real processes, but for those of ut (root)
	@packaging/bootstrap.sh tools "make integration"
	$(TRY) tests/integration $(patsubst %,--ignore=%,$(ETCD_ONLY) $(OWN_ETCD) $(KUBERNETES_ONLY) $(MACHINES) $(RUNTIMES) $(filter-out $(ONLY_DIST),$(OF_EXECUTABLE))) $(PYTEST_ARGS)

ut: ut-etcd ut-kdd ut-kubevirt  ## the three matrices, on the bundle; on the self-contained executable with SUBJECT=dist (root)

ut-embedded: $(MADE)  ## the plugins' tests on the embedded datastore; the executable also alone in an empty root (root)
	@packaging/bootstrap.sh tools "make ut-embedded"
	$(TRY) $(UT_EMBEDDED) $(PYTEST_ARGS)

ut-etcd: $(MADE)  ## the plugins' tests, and the datastore's own, on a real etcd; pods from a real API server (root)
	@packaging/bootstrap.sh kubernetes "make ut-etcd"
	TORTIE_TEST_STORE=etcd $(TRY) $(UT_ETCD) $(PYTEST_ARGS)

ut-kdd: $(MADE)  ## everything of theirs with Kubernetes as the datastore, in both API groups, on a real API server (root)
	@packaging/bootstrap.sh kubernetes "make ut-kdd"
	TORTIE_TEST_STORE=kubernetes $(TRY) $(UT_KDD) $(PYTEST_ARGS)

ut-kubevirt: $(MADE)  ## virtual machines, with Kubernetes as the datastore, in both API groups, on a real API server (root)
	@packaging/bootstrap.sh kubernetes "make ut-kubevirt"
	TORTIE_TEST_STORE=kubernetes $(TRY) $(UT_KUBEVIRT) $(PYTEST_ARGS)

ut-transports: build  ## a share of the three matrices with the bundle, on lean and on library transports (root)
	@packaging/bootstrap.sh kubernetes "make ut-transports"
	@export TORTIE_BIN=$(abspath $(BIN)) PYTEST="$(PYTEST)" WORKERS=$(WORKERS); \
	  packaging/transports.sh "$(TRANSPORTS)" "$(UT_TRANSPORTS)" "$(UT_TRANSPORTS_KDD)" $(PYTEST_ARGS)

ut-all:  ## these with the executable, with the bundle, and with the bundle on library transports (root; two hours)
	@failed=; for subject in "dist lean" "build lean" "build library"; do set -- $$subject; \
	  for matrix in ut-embedded ut-etcd ut-kdd ut-kubevirt; do printf '\n===== make %s: %s\n' $$matrix "$$subject"; \
	    $(MAKE) --no-print-directory $$matrix TORTIE_BIN= SUBJECT=$$1 TORTIE_TRANSPORT=$$2 || failed="$$failed, $$matrix $$subject"; \
	  done; done; [ -z "$$failed" ] || { echo "ut-all FAILED:$${failed#,}"; exit 1; }

tested:
	@echo $(TESTED)

PEER ?=
interop: build  ## share an etcd, and a cluster, with the original: PEER=folder of its calico and calico-ipam (root)
	@[ -n "$(PEER)" ] || { echo "INTEROP NOT RUN: say where the original is, make interop PEER=<folder of its calico and calico-ipam>" >&2; exit 2; }
	@packaging/bootstrap.sh kubernetes "make interop"
	TORTIE_BIN=$(abspath $(BIN)) TORTIE_PEER=$(abspath $(PEER)) $(PYTEST) tests/interop $(PYTEST_ARGS)

CONTAINERD ?=
WRITE ?=
# FRESH says that the executable has just been made.
EXECUTABLE_MADE := $(if $(FRESH),bootstrap,dist)
runtimes: $(EXECUTABLE_MADE)  ## containerd and podman run pods on the executable: every scenario, every datastore (root; six minutes; QUICK=1, CONTAINERD=2)
	@packaging/bootstrap.sh runtimes "make runtimes"
	@[ -z "$(CONTAINERD)" ] || packaging/containerd.sh build
	TORTIE_BIN=$(abspath $(EXECUTABLE)) TORTIE_RUNTIMES_QUICK=$(QUICK) TORTIE_RUNTIMES_WRITE=$(WRITE) TORTIE_RUNTIMES_CONTAINERD=$(if $(CONTAINERD),$$(packaging/containerd.sh find)) \
	  $(PYTEST) $(wildcard $(RUNTIMES)/test_runtime_*.py) -v $(if $(QUICK),-n 2 --dist loadfile) $(PYTEST_ARGS)

cluster: $(EXECUTABLE_MADE)  ## two nodes of a real Kubernetes networked by the shipped manifest (root; two minutes; PEER=folder: the original on one of them)
	@packaging/bootstrap.sh cluster "make cluster"
	TORTIE_BIN=$(abspath $(EXECUTABLE)) TORTIE_PEER=$(if $(PEER),$(abspath $(PEER))) TORTIE_RUNTIMES_WRITE=$(WRITE) $(PYTEST) $(RUNTIMES)/test_cluster.py -v -s $(PYTEST_ARGS)

chaos: $(EXECUTABLE_MADE)  ## the same cluster while everything goes wrong, by chance of a seed (root; MINUTES=30 SEED=7; two minutes more to heal and count)
	@packaging/bootstrap.sh cluster "make chaos"
	$(VENV)/bin/python $(RUNTIMES)/chaos.py --minutes $(MINUTES) --seed $(SEED) --bin $(EXECUTABLE)

lint: bootstrap  ## formatting, lint, types, import rules
	@export MYPYPATH=packaging; failed=; for check in "ruff format --check ." "ruff check ." "mypy" $(foreach folder,packaging packaging/bench packaging/executable packaging/release packaging/windows packaging/site,"mypy $(wildcard $(folder)/*.py)") "lint-imports"; do \
	  echo "$$check"; $(VENV)/bin/$$check || failed="$$failed, $$check"; \
	done; [ -z "$$failed" ] || { echo "lint FAILED:$${failed#,}"; exit 1; }

build: bootstrap  ## fill bin/$ARCH with calico, calico-ipam and tortie
	@$(VENV)/bin/python packaging/bundle.py build --lock requirements.lock $(BIN)

dist: bootstrap  ## fill dist/linux-$ARCH with the self-contained executable (the first time: several minutes)
	@packaging/bootstrap.sh compiler "make dist"
	@$(VENV)/bin/python packaging/executable/dist.py $(EXECUTABLE) --arch $(ARCH)

windows: bootstrap  ## fill dist/windows-amd64 with calico.exe, and try it under Wine over fakes of HNS's DLLs (the first time: 160 MB of packages)
	@packaging/bootstrap.sh windows "make windows"
	@$(VENV)/bin/python packaging/windows/windows.py dist/windows-amd64
	TORTIE_WINDOWS_BIN=$(abspath dist/windows-amd64) $(PYTEST) tests/under_wine $(PYTEST_ARGS)

# `make image` and `make release` do it for each of these machines.
ARCHES ?= $(ARCH)
PLUGINS ?=
VERSION = $(shell sed -n 's/^VERSION = "\(.*\)"/\1/p' entrypoints/version.py)
TAG ?= tortie:$(VERSION)
image: bootstrap  ## build the container image from the executable (ARCHES=arm64; TAG=registry.example/tortie:v1; PLUGINS=folder of others)
	@$(foreach arch,$(ARCHES),$(MAKE) --no-print-directory dist ARCH=$(arch) && \
	  $(VENV)/bin/python packaging/release/image_root.py $(if $(PLUGINS),--plugins "$(PLUGINS)") dist/linux-$(arch) build/image/linux-$(arch) && \
	  docker build --no-cache --platform linux/$(arch) --build-arg TARGETARCH=$(arch) --build-arg VERSION=$(lastword $(subst :, ,$(TAG))) \
	    --tag $(TAG)$(if $(filter-out $(arch),$(ARCHES)),-$(arch)) . &&) true

release: bootstrap  ## write dist/release: a tarball for each of ARCHES, checksums, bills of materials
	@$(foreach arch,$(ARCHES),$(MAKE) --no-print-directory dist ARCH=$(arch) &&) true
	@PYTHON="$(PYTHON)" packaging/bootstrap.sh release
	@build/release-tools/bin/python packaging/release/release.py dist dist/release $(ARCHES)

man: bootstrap  ## write the manual page of tortie, and what shells complete by, into build/share
	@$(VENV)/bin/python packaging/manual.py build/share

DIST ?=
SHARE ?= /usr/local/share
install: $(if $(DIST),dist,build)  ## copy them to $DESTDIR/opt/cni/bin, manual page and completion to $DESTDIR/usr/local/share (DIST=1: the one of `make dist`; BRIDGE=1: also as `bridge`)
	@$(VENV)/bin/python packaging/bundle.py install $(if $(DIST),$(EXECUTABLE),$(BIN)) "$(DESTDIR)/opt/cni/bin" $(if $(BRIDGE),--also bridge)
	@$(VENV)/bin/python packaging/manual.py "$(DESTDIR)$(SHARE)"

QUICK ?=
ROUNDS ?=
bench: build  ## time whole calls beside a floor, and PEER=folder of another implementation; writes docs/benchmarks.md (root; QUICK=1 without that, ROUNDS=50)
	@packaging/bootstrap.sh kubernetes "make bench"
	@packaging/bootstrap.sh compiler "make bench"
	@$(VENV)/bin/python packaging/bench/bench.py --bin $(BIN) --executable $(EXECUTABLE) $(if $(PEER),--peer $(PEER)) $(if $(QUICK),--quick,--page docs) $(if $(ROUNDS),--rounds $(ROUNDS))

site: bootstrap  ## make build/site of the documents, to be read and searched without a network; a link that leads nowhere is an error
	@PYTHON="$(PYTHON)" packaging/bootstrap.sh site
	@$(VENV)/bin/python packaging/site/layout.py build/site-source
	@TORTIE_VERSION=$(VERSION) build/site-tools/bin/sphinx-build -q -W --keep-going -j 2 -c packaging/site -d build/site-doctrees build/site-source build/site
	@echo "build/site/index.html"

documents: build dist site  ## the site, and the commands that documents show, with a cluster too, on the executable (root)
	@packaging/bootstrap.sh kubernetes "make documents"
	TORTIE_DOCUMENTS_CLUSTER=1 TORTIE_BIN=$(abspath $(EXECUTABLE)) $(PYTEST) tests/integration/documents tests/unit/house/test_documents.py tests/unit/house/test_command_blocks.py $(PYTEST_ARGS)

keys: bootstrap  ## write what parsers know of keys and annotations into docs/configuration.md and docs/annotations.md
	@PYTHONPATH=. $(VENV)/bin/python packaging/site/keys.py

pictures: bootstrap  ## draw the diagrams of the documents, docs/pictures
	@$(VENV)/bin/python packaging/site/pictures.py

behaviours: bootstrap  ## say in docs/behaviours.md which test shows which behaviour
	@$(VENV)/bin/python tests/house/behaviours.py

lock:  ## choose the newest allowed dependencies and write requirements.lock
	@packaging/lock.sh

manifests: bootstrap  ## write manifests/*.yaml from manifests/parts
	@$(VENV)/bin/python packaging/manifests.py

proto:  ## make the gRPC message classes anew from adapters/*/*.proto
	@packaging/proto.sh

clean:  ## remove what the other targets made
	rm -rf bin build dist .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

bootstrap:
	@PYTHON="$(PYTHON)" packaging/bootstrap.sh venv

"""A network that a runtime is given: one conflist, alone or with the CNI project's plugins in a chain (see `kinds`).

    network = KINDS["etcd"](node, programs, undo); network.begin()
    network.configure(chain=True)             the one conflist of the node
    network.remains()                         what is there that no pod needs: [] is what every test ends with

Invariant: what a network is told comes from files of the node, as it would on a machine; the tests look at records
through `tortie`, as its operator would.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from integration.runtimes.containerd import BIN, CONF
from integration.runtimes.nodes import Node, await_that

RECORDER = Path(__file__).with_name("recorder.py")
PROGRAMS = ("calico", "calico-ipam", "my-custom-cni", "tortie")
OTHERS = Path("/usr/lib/cni")
CHAIN: tuple[dict[str, Any], ...] = (
    {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}},
    {"type": "bandwidth", "capabilities": {"bandwidth": True}},
    {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}},
)
# Behind the recorder, which fails when told to: of an ADD that failed the runtime has no result, and Debian's firewall
# finds its own rules by the addresses in the result, so it would leave them.
AFTER: tuple[dict[str, Any], ...] = ({"type": "firewall", "backend": "iptables"},)
# What plugins keep though no container is left: locks, the address after which host-local goes on, IPAM's database.
_numbers = count(1)
_CAPABILITIES = ("portMappings", "bandwidth", "dns", "ips", "mac", "aliases", "ipRanges", "cgroupPath")
_ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
_LASTING = re.compile(
    r"/run/(containerd|netns|lock|runc|podman|podman-tmp|calico(/ipam\.lock|/cni|/cni/ipam_upgraded)?$|xtables\.lock|libpod|containers|crun|cni|crio|secrets|nri)|/var/lib/cni/(networks|results)?(/[^/]+(/(lock|last_reserved_ip\.\d))?)?$"
    r"|/var/lib/tortie|/var/(log|cache|lib/(containerd|containers|kubelet|calico))|/run/[^/]*$"
)


class Network:
    """`main` is the plugin that gives containers their interface."""

    name = "pod-net"
    main: dict[str, Any]
    environment: dict[str, str] = {}

    def __init__(self, node: Node, programs: Path, undo: ExitStack) -> None:
        self.node, self.programs, self.undo = node, programs, undo
        self.recorder = node.folder / "recorder"

    def begin(self) -> None:
        """Put the programs where runtimes look for them, and have a datastore with two pools."""
        self.recorder.mkdir(exist_ok=True)
        shutil.copy(RECORDER, self.recorder / "recorder.py")
        launcher = f'#!/bin/sh\nexec "{sys.executable}" -I "{self.recorder}/recorder.py"\n'
        self.node.write(f"{BIN}/recorder", launcher, 0o755)
        self.node.run(
            "cp", *(str(OTHERS / name) for name in ("loopback", "tuning", "bandwidth", "portmap", "firewall")), BIN
        )
        self.node.run("cp", "-d", *(str(self.programs / name) for name in PROGRAMS), BIN)
        self.prepare()
        self.links = self._links()
        self.routes = self._routes()

    def prepare(self) -> None: ...

    def add_pod(self, name: str) -> str:
        """Before the runtime is asked for it, as whoever schedules pods does. Its uid."""
        return f"{name}-{next(_numbers)}"

    def drop_pod(self, name: str) -> None: ...

    def conflist(self, *, chain: bool = False, version: str = "1.0.0", **more: Any) -> dict[str, Any]:
        before, after = (CHAIN, AFTER) if chain else ((), ())
        plugins = [
            self.main | more,
            *before,
            {"type": "recorder", "capabilities": dict.fromkeys((*_CAPABILITIES, _ANNOTATIONS), True)},
            *after,
        ]
        return {"cniVersion": version, "name": self.name, "plugins": plugins}

    def configure(self, conflist: dict[str, Any] | None = None, **options: Any) -> None:
        """Whole at once, and with a word by which it is known who has read it."""
        self.word = f"configuration{next(_numbers)}x"
        text = json.dumps({**(conflist or self.conflist(**options)), "word": self.word})
        self.node.write(f"{CONF}/10-pods.new", text)
        self.node.run("mv", f"{CONF}/10-pods.new", f"{CONF}/10-pods.conflist")

    def unconfigure(self) -> None:
        self.node.run("rm", "-f", f"{CONF}/10-pods.conflist")

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Nothing that the main plugin asks for is answered, nor refused, meanwhile."""
        raise NotImplementedError
        yield

    @contextmanager
    def holding(self, program: str, path: str) -> Iterator[None]:
        """A process of the node has the file open in a way that keeps others waiting."""
        holder = self.node.start(sys.executable, "-I", "-c", program, path, log="holder")
        holder.await_ready(lambda: "held" in holder.log())
        try:
            yield
        finally:
            holder.kill()
            holder.log_path.unlink()

    # What the runtime sent

    def fault(self, verb: str, text: str = "") -> Path:
        """From now on the recorder fails at that verb; until the file that is returned is removed."""
        file = self.recorder / f"fail-{verb}"
        file.write_text(text)
        return file

    def calls(self) -> list[dict[str, Any]]:
        log = self.recorder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def forget_calls(self) -> None:
        (self.recorder / "calls.jsonl").unlink(missing_ok=True)

    def delete_by_hand(self, environment: dict[str, str]) -> None:
        """DEL of our plugin for the container of that call, whose namespace is gone."""
        conf = {"cniVersion": "1.0.0", "name": self.name} | self.main
        again = environment | {"CNI_COMMAND": "DEL", "CNI_NETNS": ""}
        self.node.run(f"{BIN}/{self.main['type']}", stdin=json.dumps(conf), **again)

    # What there is

    def tortie(self, *words: str) -> str:
        return self.node.run(f"{BIN}/tortie", *words, **self.environment)

    def remains(self) -> list[str]:
        found = [f"link {name}" for name in sorted(self._links() - self.links)]
        found += [f"route {route}" for route in sorted(self._routes() - self.routes)]
        found += [f"rule {line}" for line in self._packet_rules() if self._names_a_pod(line)]
        found += [f"file {path}" for path in self._files()]
        return found + self.records()

    def await_nothing(self) -> None:
        """The kernel takes a while for the links of a namespace that has ended; the runtime for its last DEL."""
        with suppress(TimeoutError):
            await_that(lambda: not self.remains(), "nothing is left")
        assert self.remains() == []

    def records(self) -> list[str]:
        return []

    def _links(self) -> set[str]:
        return {one["ifname"] for one in self.node.show("link")}

    def _routes(self) -> set[str]:
        lines = [
            line
            for family in "46"
            for line in self.node.run("ip", f"-{family}", "route", "show", "table", "all").splitlines()
        ]
        lines += [line for family in "46" for line in self.node.run("ip", f"-{family}", "rule").splitlines()]
        return {line for line in lines if "eth0" not in line and "fe80::" not in line and "ff00::" not in line}

    def _packet_rules(self) -> list[str]:
        save = [self.node.run(program) for program in ("iptables-save", "ip6tables-save")]
        return "\n".join([*save, self.node.run("nft", "list", "ruleset")]).splitlines()

    def _names_a_pod(self, line: str) -> bool:
        return "10.44." in line or "fd44:" in line or 'id: \\"' in line or "id: " in line

    def _files(self) -> list[str]:
        found = self.node.run("find", "/run", "-xdev").splitlines()
        found += [
            f"/{path.relative_to(self.node.disk('/'))}" for path in self.node.disk("var").rglob("*") if path.is_file()
        ]
        return sorted(path for path in found if not _LASTING.match(path) and path != "/run")

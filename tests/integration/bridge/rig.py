"""A host for the bridge plugin: an installed bundle, a namespace that plays the host's, and containers.

The reference plugin runs on it too, if the system has it, so that what both have made can be compared.

Invariant: nothing outside the test's namespaces and its folder is changed, and all of it goes with the test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from integration.plugin.host import Answer, stop
from integration.plugin.kernel import NUMBERS, Namespace

REFERENCE = Path("/usr/lib/cni")  # where Debian has the CNI project's own plugins
VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
LONGEST_CALL = 60.0
PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


class Container:
    def __init__(self, rig: Rig, identity: str = "", ifname: str = "eth0") -> None:
        self.space = Namespace("pod", rig.undo)
        self.identity = identity or f"{next(NUMBERS):05d}" + "c" * 10
        self.netns, self.ifname = self.space.path, ifname

    @property
    def host_name(self) -> str:
        return f"{self.ifname}{self.identity[:5]}"


class Rig:
    """`call` is what a runtime does. Configurations are of `network`, with host-local on `subnet`, unless told."""

    def __init__(self, binaries: Path, folder: Path, undo: ExitStack) -> None:
        self.bin, self.folder, self.undo = binaries, folder, undo
        self.net = Namespace("host", undo)
        self.state = folder / "state"
        self.data = folder / "networks"
        self.path = f"{binaries}:{REFERENCE}"
        self.network = "net1"

    def container(self, identity: str = "", ifname: str = "eth0") -> Container:
        return Container(self, identity, ifname)

    def ipam(self, *subnets: str, **more: Any) -> dict[str, Any]:
        sets = [[{"subnet": subnet}] for subnet in subnets or ("10.244.0.0/24",)]
        return {"type": "host-local", "dataDir": str(self.data), "ranges": sets, **more}

    def conf(self, **more: Any) -> dict[str, Any]:
        """A value of None leaves the key out."""
        whole = {
            "cniVersion": "1.0.0",
            "name": self.network,
            "type": "my-custom-cni",
            "bridge": "mycni0",
            "stateDir": str(self.state),
            "ipam": self.ipam(),
            **more,
        }
        return {key: value for key, value in whole.items() if value is not None}

    def environment(self, verb: str, container: Container | None, **more: str | None) -> dict[str, str]:
        transport = os.environ.get("TORTIE_TRANSPORT")
        given: dict[str, str | None] = {
            "CNI_COMMAND": verb,
            "CNI_PATH": self.path,
            "PATH": PATH,
            "TORTIE_TRANSPORT": transport,
        }
        if container is not None:
            given |= {
                "CNI_CONTAINERID": container.identity,
                "CNI_NETNS": container.netns,
                "CNI_IFNAME": container.ifname,
            }
        return {key: value for key, value in {**given, **more}.items() if value is not None}

    def start(self, program: str | Path, environment: dict[str, str], **options: Any) -> subprocess.Popen[bytes]:
        path = program if isinstance(program, Path) else self.bin / program
        words = ["/usr/bin/nsenter", f"--net={self.net.path}", "--", str(path)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(words, env=environment, **{**pipes, **options})
        self.undo.callback(stop, process)
        return process

    def call(
        self,
        verb: str,
        container: Container | None,
        conf: dict[str, Any] | None = None,
        program: str | Path = "my-custom-cni",
        **environment: str | None,
    ) -> Answer:
        conf = self.conf() if conf is None else conf
        if conf.get("cniVersion") == "1.1.0":  # which Debian's host-local does not know; ours is built in
            environment = {"CNI_PATH": str(self.bin), **environment}
        process = self.start(program, self.environment(verb, container, **environment))
        given = json.dumps(conf).encode()
        out, err = process.communicate(given, timeout=LONGEST_CALL)
        return Answer(process.returncode, out.decode(), err.decode())

    def add(self, container: Container, program: str | Path = "my-custom-cni", **members: Any) -> dict[str, Any]:
        """The result of an ADD that must succeed."""
        return self.call("ADD", container, self.conf(**members), program).result()

    def delete(self, container: Container, program: str | Path = "my-custom-cni", **members: Any) -> None:
        self.call("DEL", container, self.conf(**members), program).silent()

    def check(self, container: Container, result: dict[str, Any] | None, **members: Any) -> Answer:
        more = {} if result is None else {"prevResult": result}
        return self.call("CHECK", container, self.conf(**{**members, **more}))

    def refused(self, answer: Answer, code: int, *parts: str) -> dict[str, Any]:
        """The error of a call that must have failed; ours names the version too."""
        assert answer.exit == 1, answer
        error: dict[str, Any] = json.loads(answer.stdout)
        assert next(iter(error)) == "cniVersion", answer
        assert error["code"] == code, answer
        for part in parts:
            assert part in f"{error['msg']}\n{error.get('details', '')}", answer
        return error

    # --- what came of it -------------------------------------------------------------------------------------------

    def reservations(self) -> set[str]:
        files = self.data.glob("*/*")
        return {file.name for file in files if file.name != "lock" and not file.name.startswith("last_reserved")}

    def records(self) -> set[str]:
        return {file.name for file in self.state.glob("*/*")}

    def devices(self) -> set[str]:
        """The pairs' ends and bridges on the host."""
        return {link["ifname"] for link in self.net.show("link", "show") if link.get("linkinfo")}

    def nat(self, command: str = "iptables") -> list[str]:
        """iptables' rules in table nat, without chains' declarations."""
        return self._lines(f"{command}-save", "-t", "nat")

    def nft(self) -> list[str]:
        """nftables' rules that carry a comment of an attachment."""
        lines = self._lines("nft", "list", "ruleset")
        return [line for line in lines if ", net: " in line or "macspoofchk-" in line]

    def _lines(self, *command: str) -> list[str]:
        if shutil.which(command[0]) is None:
            return []
        lines = self.net.run(*command, check=False).stdout.splitlines()
        return [line.strip() for line in lines if line.strip() and line[0] not in ":#*" and line != "COMMIT"]


def state_of(rig: Rig, container: Container, bridge: str = "mycni0") -> dict[str, Any]:
    """Everything about one attachment that the kernel tells, without names and numbers that differ by chance."""
    inside = container.space
    link = inside.link(container.ifname)
    port = next(one for one in rig.net.show("link", "show") if one["ifindex"] == link["link_index"])
    flags = ("hairpin", "isolated", "guard", "learning", "flood")
    return {
        "inside": {key: link.get(key) for key in ("mtu", "operstate", "group", "txqlen")},
        "kind": link["linkinfo"]["info_kind"],
        "addresses": [
            {key: info.get(key) for key in ("family", "local", "prefixlen", "broadcast", "scope")}
            for info in inside.show("addr", "show", "dev", container.ifname)[0]["addr_info"]
            if info["scope"] == "global"
        ],
        "routes": [
            {key: value for key, value in route.items() if key not in {"flags", "pref", "metrics"}}
            for family in (4, 6)
            for route in inside.routes(family)
            if not route["dst"].startswith("fe80") and route.get("dev") == container.ifname
        ],
        "port": {key: port.get(key) for key in ("mtu", "operstate", "master")},
        "flags": {key: port["linkinfo"]["info_slave_data"][key] for key in flags},
        "bridge": {key: rig.net.link(bridge).get(key) for key in ("mtu", "operstate")},
        "gateways": sorted(rig.net.addresses(bridge)),
        "host settings": rig.net.sysctls(
            "ipv4/ip_forward", "ipv6/conf/all/forwarding", f"ipv6/conf/{bridge}/accept_ra"
        ),
        "settings": inside.sysctls(
            f"ipv4/conf/{container.ifname}/arp_notify",
            f"ipv6/conf/{container.ifname}/accept_dad",
            f"ipv6/conf/{container.ifname}/keep_addr_on_down",
            f"ipv6/conf/{container.ifname}/disable_ipv6",
        ),
    }

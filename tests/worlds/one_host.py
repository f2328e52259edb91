"""One host for the bridge plugin, all in memory: a machine, a packet filter, records, and a scripted IPAM plugin.

Invariant: each call gets a runtime of its own, as each is a process of its own.
"""

from __future__ import annotations

import json

from adapters.memory.attachments import MemoryAttachments
from adapters.memory.bridges import MemoryBridges
from adapters.memory.clock import MemoryClock
from adapters.memory.firewall import MemoryFirewall
from adapters.memory.ipam_plugin import ScriptedIpamPlugin
from adapters.memory.lock import MemoryLock
from adapters.memory.log import RecordingLog
from domain.bridge.conf import AttachmentId, BridgeConf, read_bridge_conf
from domain.cni.request import CniArgs, Request
from domain.cni.result import Result, ResultIp, result_text
from domain.ipam.address import Address, Cidr
from ports.firewall import RuleOwner
from ports.runtime import BridgeRuntime
from usecases.add_bridge import add_bridge
from usecases.calls.call import BridgeCall
from usecases.calls.safeguards import Undo
from usecases.check_bridge import check_bridge
from usecases.collect_bridge import collect_bridge
from usecases.delete_bridge import delete_bridge
from usecases.status_bridge import status_bridge

NETWORK = "net1"
V4, V6 = Cidr.parse("10.244.0.2/24"), Cidr.parse("fd44::2/64")
GATEWAY_V4, GATEWAY_V6 = Address.parse("10.244.0.1"), Address.parse("fd44::1")
ONE_V4 = Result(ips=(ResultIp(V4, gateway=GATEWAY_V4),))
DUAL = Result(ips=(ResultIp(V4, gateway=GATEWAY_V4), ResultIp(V6)))


def netns(container: str) -> str:
    return f"/var/run/netns/{container}"


class OneHost:
    """`c1` to `c3` have namespaces; IPAM of type host-local answers with `ONE_V4` until it is told otherwise."""

    def __init__(self) -> None:
        self.clock = MemoryClock()
        self.log = RecordingLog()
        self.bridges = MemoryBridges(self.clock, self.log)
        self.firewall = MemoryFirewall(self.clock)
        self.attachments = MemoryAttachments()
        self.ipam = ScriptedIpamPlugin(self.clock)
        self.ipam.answers("host-local", ONE_V4)
        self.lock = MemoryLock(self.clock, self.log)
        self.network = self.bridges.network
        for container in ("c1", "c2", "c3"):
            self.network.add_namespace(netns(container))

    def runtime(self) -> BridgeRuntime:
        return BridgeRuntime(
            bridges=lambda: self.bridges,
            firewall=lambda: self.firewall,
            attachments=lambda: self.attachments,
            ipam_plugin=lambda: self.ipam,
            lock=lambda: self.lock,
            clock=self.clock,
            log=self.log,
        )

    def conf(self, *, own_name: bool = True, **members: object) -> BridgeConf:
        base = {"cniVersion": "1.1.0", "name": NETWORK, "ipam": {"type": "host-local"}}
        return read_bridge_conf({**base, **members}, own_name=own_name)

    def call(self, conf: BridgeConf, container: str = "c1", ifname: str = "eth0", **changes) -> BridgeCall:
        request = Request(
            **{
                "command": "ADD",
                "container_id": container,
                "netns": netns(container),
                "ifname": ifname,
                "args": "",
                "path": ("/opt/cni/bin",),
                **changes,
            }
        )
        text = json.dumps({"name": conf.name})
        return BridgeCall(request, CniArgs(), conf, text, self.clock.deadline(60))

    def add(self, conf: BridgeConf | None = None, *place: str, **changes) -> Result:
        undo = Undo(self.clock, self.log)
        try:
            result = add_bridge(self.call(conf or self.conf(), *place, **changes), self.runtime(), undo)
        except BaseException:
            undo.run()
            raise
        return result

    def delete(self, conf: BridgeConf | None = None, *place: str, **changes) -> None:
        delete_bridge(self.call(conf or self.conf(), *place, **changes), self.runtime())

    def check(self, conf: BridgeConf | None = None, *place: str, **changes) -> None:
        check_bridge(self.call(conf or self.conf(), *place, **changes), self.runtime())

    def check_after(self, result: Result, conf: BridgeConf | None = None) -> None:
        """With the answer of ADD as prevResult."""
        conf = conf or self.conf()
        self.check(conf.replace(prev_result=result_text(result, "1.1.0")))

    def collect(self, *valid: tuple[str, str], **members: object) -> None:
        listed = [{"containerID": container, "ifname": ifname} for container, ifname in valid]
        conf = self.conf(**{"cni.dev/valid-attachments": listed, **members})
        collect_bridge(self.call(conf, "", ""), self.runtime())

    def status(self, conf: BridgeConf | None = None) -> None:
        status_bridge(self.call(conf or self.conf(), "", "", netns=""), self.runtime())

    def host(self, name: str):
        return self.network.link("", name)

    def inside(self, container: str = "c1", ifname: str = "eth0"):
        return self.network.link(netns(container), ifname)

    def owner(self, container: str = "c1", ifname: str = "eth0") -> RuleOwner:
        return RuleOwner(NETWORK, AttachmentId(container, ifname))

    def verbs(self) -> list[str]:
        return [ran.verb for ran in self.ipam.calls]

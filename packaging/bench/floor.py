"""The floor: what an ADD and a DEL ask of the kernel, done by `ip -batch` and plain writes of the same settings.

It is made from the product's own plan, so that both do the same; in the order that needs the fewest starts of `ip`,
which is one for each side. It asks no datastore, and knows beforehand what to do.

`state` is what both leave in the kernel, to be compared before anything is timed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from process import Call

from domain.ipam.address import Address, Cidr
from domain.linux.steps import (
    CONTAINER,
    HOST,
    AddAddress,
    AddRoute,
    CreatePair,
    EnsureRoute,
    SetUp,
    WriteSysctl,
)
from domain.workload.attachment import Attachment
from domain.workload.plan import plan_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.linux.steps import Step

EVERYWHERE = Cidr.parse("0.0.0.0/0")


class Floor:
    """`calls(netns, number)`: an ADD and the DEL of it, for a namespace and a number of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._words, self._folder = [program, "plan", shutil.which("ip") or "/sbin/ip"], folder

    def calls(self, netns: str, number: int) -> dict[str, Call]:
        address = Address(EVERYWHERE.version, 0x0A3F0000 + number)  # 10.63.0.0/16, which no pool of ours has
        plan = plan_for(
            Attachment(
                netns=netns,
                ifname="eth0",
                host_name=f"calif{number}",
                addresses=(address.host_cidr,),
                routes=(EVERYWHERE,),
                gateways=(None,),
            )
        )
        batches, writes = _translate(plan, netns)
        files = {side: self._batch(f"{side}{number}", lines) for side, lines in batches.items()}
        gone = self._batch(f"gone{number}", ["link del eth0"])
        add = [
            *self._words,
            "batch",
            files[HOST],
            *writes[HOST],
            "enter",
            netns,
            "batch",
            files[CONTAINER],
            *writes[CONTAINER],
        ]
        return {"ADD": Call(add, {}), "DEL": Call([*self._words, "enter", netns, "batch", gone], {})}

    def _batch(self, name: str, lines: list[str]) -> str:
        path = self._folder / f"{name}.batch"
        path.write_text("\n".join(lines) + "\n")
        return str(path)


def _translate(plan: tuple[Step, ...], netns: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Lines for `ip -batch`, and settings to write, by side."""
    batches: dict[str, list[str]] = {HOST: [], CONTAINER: []}
    writes: dict[str, list[str]] = {HOST: [], CONTAINER: []}
    for step in plan:
        action = step.action
        if isinstance(action, CreatePair):
            batches[HOST].append(_pair(action, netns))
        elif isinstance(action, WriteSysctl):
            writes[action.side] += ["write", f"/proc/sys/{action.path}", action.value]
        elif isinstance(action, SetUp):
            batches[action.device.side].append(f"link set dev {action.device.name} up")
        elif isinstance(action, (AddRoute, EnsureRoute)):
            via = f"via {action.gateway} " if isinstance(action, AddRoute) and action.gateway else ""
            scope = action.scope.replace("universe", "global")
            line = f"route add {action.destination} {via}dev {action.device.name} scope {scope}"
            batches[action.device.side].append(line)
        elif isinstance(action, AddAddress):
            batches[action.device.side].append(f"address add {action.address} dev {action.device.name}")
    return batches, writes


def _pair(action: CreatePair, netns: str) -> str:
    host = f"{action.host.name} address {action.mac} txqueuelen {action.tx_queue_length}"
    return f"link add {host} type {action.kind} peer name {action.container.name} netns {Path(netns).name}"


def state(netns: str) -> dict[str, Any]:
    """The only pod there is, without what differs from one to the next: names, indexes, the pod's MAC and address."""
    inside = ["-n", Path(netns).name]
    (host,) = (one for one in _show("link", "show", "type", "veth") if one["ifname"].startswith("cali"))
    (pod,) = _show(*inside, "address", "show", "dev", "eth0")
    own = next(one["local"] for one in pod["addr_info"] if one["family"] == "inet")
    name = host["ifname"]
    found: dict[str, Any] = {}
    for step in plan_for(Attachment(netns="", ifname="eth0", host_name=name, addresses=(EVERYWHERE,), routes=())):
        if isinstance(step.action, WriteSysctl):
            words = [] if step.action.side == HOST else ["ip", "netns", "exec", inside[1]]
            command = [*words, "cat", f"/proc/sys/{step.action.path}"]
            setting = step.action.path.replace(name, "HOST")
            found[setting] = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for side, link in ((HOST, host), (CONTAINER, pod)):
        found |= {f"{side} {what}": link.get(what) for what in ("mtu", "txqlen", "qdisc")}
        found[f"{side} is up"] = "UP" in link["flags"]  # whether there is a carrier comes later
    found["mac"] = host["address"]
    found["addresses"] = [(one["scope"], one["prefixlen"]) for one in pod["addr_info"] if one["family"] == "inet"]
    found["routes"] = _show(*inside, "route")
    found["host routes"] = _show("route", "show", "dev", name)
    return {what: str(value).replace(own, "OWN") for what, value in found.items()}


def _show(*words: str) -> list[dict[str, Any]]:
    told = subprocess.run(["ip", "-j", *words], check=True, capture_output=True, text=True).stdout
    answer: list[dict[str, Any]] = json.loads(told)
    return answer

"""Replaying a recording of the original: same records before, same calls; then the same answers, records and kernel?

What differs on every run is replaced by labels in the order of its appearance (`<mac 1>`, `<index 2>`), so that not
the value but every relation between values is compared: the MAC of the answer is that of the device and of the
endpoint's record, both ends of a pair name each other's index, a repeated ADD keeps its uid. Sequence numbers become
distances: from the block's first one seen, and from the block's own.

Invariant: nothing is dropped from records and answers; of the kernel's long listings only what neither a call nor a
namespace decides (queue limits, statistics, autoconfiguration under way) is.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from integration.plugin.host import Answer, Host
from integration.plugin.kernel import Namespace

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
NO_NAMESPACE = {"", "none", "absent"}

_PATTERNS = (
    ("mac", r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"),
    ("uid", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    ("link-local", r"fe80::[0-9a-f:]+"),
)
_TIMES = (
    ("time", r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    ("nanoseconds", r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,8}[1-9])? \+0000 UTC"),
)
_FIXED = {"ee:ee:ee:ee:ee:ee", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "fe80::ecee:eeff:feee:eeee"}
# Of `ip -j -d link` and `addr`: what the kernel's version or the moment decides.
_MOMENTARY = {
    *("link_netnsid", "linkmode", "promiscuity", "allmulti", "min_mtu", "max_mtu", "parentbus", "parentdev"),
    *("gso_max_size", "gso_max_segs", "tso_max_size", "tso_max_segs", "gro_max_size", "gso_ipv4_max_size"),
    *("gro_ipv4_max_size", "inet6_addr_gen_mode", "netns-immutable", "stats64", "headroom", "tailroom"),
}


def recording(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return loaded


class Labels:
    """Labels for one side of a comparison. With `addresses` also for IPv4 addresses, their masks kept."""

    def __init__(self, *, addresses: bool = False) -> None:
        self._labels: dict[tuple[str, object], str] = {}
        self._first: dict[str, int] = {}
        self._addresses = addresses

    def apply(self, value: Any) -> Any:
        """The value with everything that differs on each run labelled."""
        if isinstance(value, dict):
            return {key: self.apply(member) for key, member in sorted(value.items())}
        if isinstance(value, list):
            return [self.apply(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def kernel(self, seen: dict[str, Any]) -> dict[str, Any]:
        """The same for what `Replay.kernel` gives."""
        return {
            "host": self._listing(seen["host"], ("host", "pod")),
            "pod": self._listing(seen["pod"], ("pod", "host")),
        }

    def _listing(self, shown: Any, sides: tuple[str, str]) -> Any:
        """What `ip` showed on the first of the two sides, where the other end of a pair is on the other."""
        if isinstance(shown, list):
            return [self._listing(item, sides) for item in shown]
        if not isinstance(shown, dict):
            return self.apply(shown)
        momentary = _MOMENTARY | ({"tentative"} if shown.get("scope") == "link" else set())
        kept = {key: value for key, value in sorted(shown.items()) if key not in momentary}
        for key, side in zip(("ifindex", "link_index"), sides):
            if key in kept:
                kept[key] = self._label(f"index on {side}", kept[key])
        return {key: self._listing(value, sides) for key, value in kept.items()}

    def records(self, texts: dict[str, str]) -> dict[str, Any]:
        """A whole datastore. A key that went away and came back begins a new count."""
        self._first = {key: first for key, first in self._first.items() if key in texts}
        return {key: self._record(key, json.loads(text)) for key, text in sorted(texts.items())}

    def _record(self, key: str, record: dict[str, Any]) -> Any:
        if "sequenceNumber" in record:
            number = record["sequenceNumber"]
            first = self._first.setdefault(key, number)
            taken = record["sequenceNumberForAllocation"]
            record = record | {
                "sequenceNumber": number - first,
                "sequenceNumberForAllocation": {ordinal: number - at for ordinal, at in taken.items()},
            }
        return self.apply(record)

    def _text(self, text: str) -> str:
        for what, pattern in _TIMES:
            if re.fullmatch(pattern, text):
                return f"<{what}>"
        for what, pattern in _PATTERNS:
            if re.fullmatch(pattern, text) and text not in _FIXED:
                return self._label(what, text)
        if self._addresses and (found := re.fullmatch(r"(\d+\.\d+\.\d+\.\d+)(/\d+)", text)):
            return self._label("address", found[1]) + found[2]
        return text

    def _label(self, what: str, value: object) -> str:
        known = sum(kind == what for kind, _ in self._labels)
        return self._labels.setdefault((what, value), f"<{what} {known + 1}>")


def differences(recorded: Any, ours: Any, place: str) -> list[str]:
    """One line per place where the two are not equal."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        return [
            line
            for key in sorted(set(recorded) | set(ours), key=str)
            for line in _member_differences(recorded, ours, key, f"{place}/{key}")
        ]
    if isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        return [
            line for index, pair in enumerate(zip(recorded, ours)) for line in differences(*pair, f"{place}[{index}]")
        ]
    if recorded == ours and type(recorded) is type(ours):
        return []
    return [f"{place}: recorded {json.dumps(recorded)}, ours {json.dumps(ours)}"]


def _member_differences(recorded: dict[str, Any], ours: dict[str, Any], key: str, place: str) -> list[str]:
    if key not in ours:
        return [f"{place}: only recorded: {json.dumps(recorded[key])}"]
    if key not in recorded:
        return [f"{place}: only ours: {json.dumps(ours[key])}"]
    return differences(recorded[key], ours[key], place)


class Replay:
    """One recording on one host. With `label_addresses` only the order of addresses counts, not their values."""

    def __init__(self, host: Host, recorded: dict[str, Any], *, label_addresses: bool = False) -> None:
        self.host = host
        self.steps: list[dict[str, Any]] = recorded["steps"]
        self.recorded = Labels(addresses=label_addresses)
        self.ours = Labels(addresses=label_addresses)
        self.begin(recorded["datastore_before"])
        used = {step["call"]["env"].get("CNI_NETNS", "").rpartition("/")[2] for step in self.steps} - NO_NAMESPACE
        self.spaces = {name: Namespace(name, host.undo) for name in sorted(used) if name.startswith("g")}

    def begin(self, records: dict[str, Any]) -> None:
        """Make the datastore what it was before the first step."""
        self.host.store.create(records)

    def texts(self) -> dict[str, str]:
        """What is in the datastore now."""
        return self.host.store.texts()

    def step(self, number: int) -> list[str]:
        """Make that call; where things differ from the recording afterwards."""
        step = self.steps[number]
        answer = self.call(step["call"])
        found = self._answer_differences(step["call"], answer)
        if "datastore" in step:
            before, after = self.recorded.records(step["datastore"]), self.ours.records(self.texts())
            found += differences(before, after, "records")
        if "kernel" in step:
            before, after = self.recorded.kernel(step["kernel"]), self.ours.kernel(self.kernel(step))
            found += differences(before, after, "kernel")
        return [f"step {number} {line}" for line in found]

    def call(self, call: dict[str, Any]) -> Answer:
        environment = {name: self._localise(text) for name, text in call["env"].items()}
        if "host-local" in call["stdin"]:
            environment["CNI_PATH"] += ":/usr/lib/cni"
        stdin = self._localise_netconf(call["stdin"])
        return self.host.raw(environment, stdin, *call["argv"], program=call["program"])

    def _localise(self, text: str) -> str:
        for name, space in self.spaces.items():
            text = re.sub(rf"/var/run/netns/{name}\b", space.path, text)
        return text.replace("<BIN>", str(self.host.bin))

    def _localise_netconf(self, text: str) -> str:
        """The recorded configuration with this host's datastore in etcd's place, and files of this test's own."""
        recorded = '"datastore_type": "etcdv3", "etcd_endpoints": "http://127.0.0.1:{}"'
        lock = {"ipam_lock_file": str(self.host.folder / "ipam.lock")}
        for port, settings in (("1", self.host.store.nowhere()), ("23790", self.host.store.settings)):
            text = text.replace(recorded.format(port), json.dumps(settings | lock)[1:-1])
        local = '"ipam": {"type": "host-local"'
        return self._localise(text.replace(local, f'{local}, "dataDir": "{self.host.folder}/networks"'))

    def _answer_differences(self, call: dict[str, Any], answer: Answer) -> list[str]:
        found = differences(call["exit"], answer.exit, "exit")
        ours = answer.stdout.replace(str(self.host.bin), "<BIN>")
        for name, space in self.spaces.items():
            ours = ours.replace(space.path, f"/var/run/netns/{name}")
        try:
            recorded, parsed = json.loads(call["stdout"]), json.loads(ours)
        except ValueError:
            return found + differences(call["stdout"], ours, "stdout")
        if isinstance(parsed, dict) and "code" in parsed and "details" not in recorded and parsed.pop("details", ""):
            ours = json.dumps(parsed, indent=4)  # more is said than there; texts and codes are the same
        found += differences(self.recorded.apply(recorded), self.ours.apply(parsed), "stdout")
        if not found and _shape(call["stdout"]) != _shape(ours):  # order of members, indentation, final newline
            found += differences(_shape(call["stdout"]), _shape(ours), "stdout as text")
        return found

    def namespace_seen(self, step: dict[str, Any]) -> str:
        """The namespace that the recorder looked at: the call's own."""
        netns: str = step["call"]["env"].get("CNI_NETNS", "")
        return netns.rpartition("/")[2]

    def kernel(self, step: dict[str, Any]) -> dict[str, Any]:
        """What the recorder looked at, here and now."""
        recorded = step["kernel"]
        wanted = next(iter(recorded["host"].values()), {"sysctl": {}})["sysctl"]
        net = self.host.net
        host = {
            name: {
                "link": net.show("link", "show", "dev", name),
                "addr": net.show("addr", "show", "dev", name),
                "route4": net.routes(4, "dev", name),
                "route6": net.routes(6, "dev", name),
                "sysctl": net.sysctls(*[re.sub("/cali[^/]+/", f"/{name}/", key) for key in wanted]),
            }
            for name in sorted(net.names())
            if name.startswith("cali")
        }
        space = self.spaces.get(self.namespace_seen(step))
        pod = self._pod(space, recorded["pod"]) if space and recorded["pod"] else None
        return {"host": host, "pod": pod}

    def _pod(self, space: Namespace, recorded: dict[str, Any]) -> dict[str, Any]:
        return {
            "link": space.show("link", "show"),
            "addr": space.show("addr", "show"),
            "route4": space.routes(4),
            "route6": space.routes(6),
            "neigh": space.show("neigh", "show"),
            "sysctl": space.sysctls(*recorded["sysctl"]),
        }


def _shape(text: str) -> str:
    """A text without what runs differ in."""
    for what, pattern in (*_PATTERNS, ("address", r"\d+\.\d+\.\d+\.\d+")):
        text = re.sub(pattern, f"<{what}>", text)
    return text

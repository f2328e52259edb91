"""What must be true of a networked pod, and of one that is gone: in records, on the host and inside."""

from __future__ import annotations

from typing import Any

from integration.plugin.store import NODE
from integration.pods.world import PodHost, Sandbox, endpoint_key

LABELS = {
    "projectcalico.org/namespace": "test",
    "projectcalico.org/orchestrator": "k8s",
    "projectcalico.org/serviceaccount": "default",
}
NAMED_PORT = {"name": "anamedport", "protocol": "TCP", "port": 555, "hostPort": 0, "hostIP": ""}
POD_IP, POD_IPS = "cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs"


def addresses_of(result: dict[str, Any]) -> list[str]:
    """The addresses of a result, each with the mask of a host."""
    addresses = []
    for ip in result["ips"]:
        address, _, length = ip["address"].partition("/")
        assert length == ("128" if ":" in address else "32")
        addresses.append(address)
    return addresses


def address_of(result: dict[str, Any]) -> str:
    (address,) = addresses_of(result)
    return address


def networks_of(result: dict[str, Any]) -> list[str]:
    return [ip["address"] for ip in result["ips"]]


def check_endpoint(pods: PodHost, sandbox: Sandbox, networks: list[str], **more: Any) -> None:
    """The stored endpoint has this and nothing else. In Kubernetes there is no MAC, and the pod says the addresses."""
    endpoint = pods.endpoint(sandbox)
    account = more.pop("account", "default")
    metadata = more.pop("metadata", {})
    whole = {
        "orchestrator": "k8s",
        "node": NODE,
        "pod": sandbox.pod,
        "endpoint": "eth0",
        "containerID": sandbox.identity,
        "interfaceName": sandbox.host_name,
        "ipNetworks": networks,
        "serviceAccountName": account,
        "profiles": ["kns.test", f"ksa.test.{account}"],
        **more,
    }
    if pods.kind == "etcd":
        whole["mac"] = sandbox.inside.link(sandbox.ifname)["address"]
    assert endpoint["spec"] == whole
    assert endpoint["metadata"]["name"] == endpoint_key(sandbox).partition("/")[2]
    assert endpoint["metadata"]["namespace"] == "test"
    assert endpoint["metadata"]["labels"] == LABELS | {"projectcalico.org/serviceaccount": account}
    assert endpoint["metadata"] | metadata == endpoint["metadata"]
    if pods.kind != "etcd":
        said = {name: text for name, text in pods.annotations(sandbox).items() if name in {POD_IP, POD_IPS}}
        assert said == {POD_IP: networks[0], POD_IPS: ",".join(networks)}


def check_settings(pods: PodHost, sandbox: Sandbox) -> None:
    """Of the host's end."""
    name = sandbox.host_name
    expected = {
        f"ipv6/conf/{name}/accept_ra": "0",
        f"ipv4/conf/{name}/route_localnet": "1",
        f"ipv4/neigh/{name}/proxy_delay": "0",
        f"ipv4/conf/{name}/proxy_arp": "1",
        f"ipv4/conf/{name}/forwarding": "1",
    }
    assert pods.net.sysctls(*expected) == expected


def check_devices(pods: PodHost, sandbox: Sandbox, addresses: list[str]) -> None:
    """Both ends are there and know each other; IPv4 routes lead out, and back in to these addresses."""
    link = pods.net.link(sandbox.host_name)
    assert "UP" in link["flags"]
    assert link["mtu"] == 1500
    (v4,) = [address for address in addresses if ":" not in address]
    assert pods.net.routes(4, "dev", sandbox.host_name) == [
        {"type": "unicast", "dst": v4, "protocol": "boot", "scope": "link", "flags": []}
    ]
    inside = sandbox.inside
    assert "UP" in inside.link("eth0")["flags"]
    assert inside.addresses("eth0") == [f"{one}/{128 if ':' in one else 32}" for one in addresses]
    assert {(route["dst"], route.get("gateway"), route["scope"], route["protocol"]) for route in inside.routes(4)} == {
        ("default", "169.254.1.1", "global", "boot"),
        ("169.254.1.1", None, "link", "boot"),
    }


def check_result(result: dict[str, Any], sandbox: Sandbox) -> None:
    """Two interfaces, and every address is the one's inside."""
    host_end, inside = result["interfaces"]
    assert host_end == {"name": sandbox.host_name}
    assert inside == {
        "name": sandbox.ifname,
        "mac": sandbox.inside.link(sandbox.ifname)["address"],
        "sandbox": sandbox.netns,
    }
    assert [ip["interface"] for ip in result["ips"]] == [1] * len(result["ips"])


def check_gone(pods: PodHost, *sandboxes: Sandbox) -> None:
    """Nothing is left of them or of anybody; in Kubernetes the pod stays, and is said to have no address."""
    assert pods.left() == {}
    pods.store.check()
    for sandbox in sandboxes:
        assert sandbox.inside.names() == {"lo"}


def check_nothing_stored(pods: PodHost) -> None:
    """No endpoint, no address: what a refused ADD leaves."""
    assert pods.left() == {}
    if pods.kind == "etcd":
        assert pods.stored() == {}

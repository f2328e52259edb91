"""What somebody wants to know the story of, in all the ways that records and log lines may name it.

Invariant: pure; what is sought names nothing but the subject, its containers, and what these hold.
"""

from __future__ import annotations

from domain.ipam.address import Address
from domain.ipam.block import KEPT_BY, MACHINE_MARK
from domain.ipam.kept import KEPT_AS
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.block import Attribute
    from domain.ipam.inventory import Inventory
    from domain.workload.endpoint import WorkloadEndpoint

SHORTEST = 8  # characters that a container's id may be meant by if it goes on; what runtimes show has twelve or more


class Sought(Value):
    """`pods` are (namespace, name). `meant` is the whole id of a container or, from `SHORTEST` characters on, its
    beginning, "" if none is meant; `containers` are whole ids that records and the log name.

    `addresses` are the subject itself: those of a pod are found by its records.
    """

    containers: frozenset[str] = frozenset()
    pods: frozenset[tuple[str, str]] = frozenset()
    addresses: frozenset[Address] = frozenset()
    meant: str = ""

    @property
    def beginning(self) -> str:
        """What a container's id may begin with; "" if it may not go on."""
        return self.meant if len(self.meant) >= SHORTEST else ""

    @property
    def words(self) -> tuple[str, ...]:
        """One of them stands in each line about it. Names of endpoints double the dashes."""
        names = [name for _, name in self.pods]
        doubled = [f"-{name.replace('-', '--')}-" for name in names]
        given = [self.meant] if self.meant else []
        return tuple(sorted({*self.containers, *given, *names, *doubled, *map(str, self.addresses)}))

    def is_in(self, text: str) -> bool:
        """Whether the text names it, and not something whose name only contains its."""
        return (
            (bool(self.beginning) and _stands(self.beginning, text, ends=False))
            or any(_stands(container, text) for container in self.containers)
            or any(_names_pod(name, text) for _, name in self.pods)
            or any(_stands(str(address), text, joins=".:") for address in self.addresses)
        )

    def has_container(self, container: str) -> bool:
        return (
            container in self.containers
            or (bool(self.meant) and container == self.meant)
            or (bool(self.beginning) and container.startswith(self.beginning))
        )

    def is_of(self, endpoint: WorkloadEndpoint) -> bool:
        return (
            self.has_container(endpoint.container_id)
            or (endpoint.metadata.namespace, endpoint.pod) in self.pods
            or not self.addresses.isdisjoint(endpoint.addresses)
        )

    def holds(self, holder: Attribute, address: Address) -> bool:
        """Whether it has the address, is about to have it, or gives it its name."""
        slots = (holder.secondary, holder.alternate or {})
        owners = {(slot.get("namespace", ""), slot.get("pod", "")) for slot in slots}
        owners.add(_parted(holder.secondary.get(KEPT_AS, "")))
        return (
            address in self.addresses
            or not owners.isdisjoint(self.pods)
            or self.has_container(container_that_has(holder))
        )

    def with_containers(self, containers: frozenset[str]) -> Sought:
        return self.replace(containers=self.containers | containers)


def container_of(handle: str) -> str:
    """Of `<network>.<container>`; containers' ids have no dots."""
    return handle.rpartition(".")[2]


def container_that_has(holder: Attribute) -> str:
    """As far as its record says. The handle of a kept address, or of a machine's, ends with a name instead."""
    handle, about = holder.holder or "", holder.secondary
    if KEPT_AS in about or MACHINE_MARK in handle:
        return about.get(KEPT_BY, "")
    return container_of(handle) if "." in handle else ""


def _parted(pod: str) -> tuple[str, str]:
    namespace, _, name = pod.partition("/")
    return namespace, name


def read_subject(text: str, namespace: str) -> Sought:
    """An address, `namespace/pod`, or one word, which is a pod of that namespace or a container's id."""
    try:
        return Sought(addresses=frozenset([Address.parse(text)]))
    except ValueError:
        pass
    if "/" in text:
        return Sought(pods=frozenset([_parted(text)]))
    return Sought(pods=frozenset([(namespace, text)]), meant=text)


def known_as(sought: Sought, inventory: Inventory) -> Sought:
    """With the containers that records name for it."""
    containers = {endpoint.container_id for endpoint in inventory.endpoints if sought.is_of(endpoint)}
    for block, _ in inventory.blocks.values():
        for ordinal in range(block.cidr.size):
            holder = block.holder(ordinal)
            if holder is not None and sought.holds(holder, block.cidr.at(ordinal)):
                containers.add(container_that_has(holder))
    return sought.with_containers(frozenset([one for one in containers if one]))


def _stands(word: str, text: str, *, joins: str = "-", ends: bool = True) -> bool:
    """Whether it is there by itself. Letters, digits and `joins` before or after it make it a part of another word;
    a `.` or `:` after which nothing follows only ends a sentence. Without `ends` it may go on.
    """
    at = text.find(word)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 2]
        begins = not (before.isalnum() or (before and before in joins))
        over = not (
            after[:1].isalnum()
            or (after[:1] and after[:1] in joins and (after[1:].isalnum() or after[1:] == after[:1]))
        )
        if begins and (over or not ends):
            return True
        at = text.find(word, at + 1)
    return False


def _names_pod(name: str, text: str) -> bool:
    return _stands(name, text) or f"-{name.replace('-', '--')}-" in text

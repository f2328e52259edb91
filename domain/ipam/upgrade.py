"""What becomes of host-local's reservations when calico-ipam takes over: decided file by file, then block by block.

host-local names a file after each address and writes the container's ID into it; Calico's records want the pod as well.
So each file meets the pods of the node: what no pod has is a leftover, and what cannot be told apart is left for
people. A pod says itself which sandbox it runs in, if Calico's plugin networked it; else its addresses have to do.

Invariant: each file has one fate, and none is thrown away whose address a pod has. Blocks come out as if every address
had been assigned by a call of its own.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.cni.request import check_container_id
from domain.ipam.address import V4, Address, Cidr
from domain.ipam.block import Attribute
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.ipam.block import Block
    from domain.workload.pod import Pod

NETWORK = "k8s-pod-network"
LOCK = "lock"
_COUNTER = "last"  # in the names of host-local's counters, which are of no use to anybody else
_UNFINISHED = ".tortie-"  # what a killed process was about to link to its place
_SANDBOX = "cni.projectcalico.org/containerID"
_POD_IPS = ("cni.projectcalico.org/podIPs", "cni.projectcalico.org/podIP")
_OVER = frozenset(("Succeeded", "Failed"))  # phases of pods that keep their address in their status only


class ReservationFile(Value):
    """A file of host-local's directory. `fault` says why it cannot be read; then there is no content."""

    name: str
    content: str = ""
    fault: str = ""


class Move(Value):
    """An address that a container of the pod has. `main`: it is the one that Kubernetes takes for the pod's."""

    name: str
    address: Address
    container_id: str
    pod: str
    namespace: str
    main: bool = True

    def attribute(self, node: str) -> Attribute:
        """As the address's holder has it in a block."""
        secondary = {"namespace": self.namespace, "node": node, "pod": self.pod}
        return Attribute(f"{NETWORK}.{self.container_id}", secondary)


class Left(Value):
    """What is not moved, and why, with what to do about it."""

    name: str
    why: str


class Fates(Value):
    """`stale` are names of files that nobody needs."""

    moves: tuple[Move, ...] = ()
    stale: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()


def fates(files: Iterable[ReservationFile], pods: Iterable[Pod]) -> Fates:
    """What becomes of each file but the lock."""
    owners = _by_address(pods)
    found = [_fate(file, owners) for file in files if file.name != LOCK]
    moves = [one for one in found if isinstance(one, Move)]
    holders: dict[Address, set[str]] = {}
    for move in moves:
        holders.setdefault(move.address, set()).add(move.container_id)
    sole = [move for move in moves if len(holders[move.address]) == 1]
    claimed = [
        Left(move.name, f"files of several containers claim {move.address}: remove those of containers that are gone")
        for move in moves
        if len(holders[move.address]) > 1
    ]
    return Fates(
        tuple(sole),
        tuple([one for one in found if isinstance(one, str)]),
        (*[one for one in found if isinstance(one, Left)], *claimed),
    )


def _fate(file: ReservationFile, owners: Mapping[Address, list[Pod]]) -> Move | Left | str:
    """A text is the name of a file that goes."""
    if _COUNTER in file.name or file.name.startswith(_UNFINISHED):
        return file.name
    try:
        address = Address.parse(file.name)
    except ValueError:
        return Left(file.name, f"failed to parse IP {file.name}: no reservation has that name; remove it")
    pods = owners.get(address, [])
    return _move(file, address, pods) if pods else file.name


def _move(file: ReservationFile, address: Address, pods: list[Pod]) -> Move | Left:
    """Of an address that at least one pod has."""
    named = ", ".join([f"{pod.namespace}/{pod.name}" for pod in pods])
    if file.fault:
        return Left(file.name, f"{file.fault}; mend it, or delete pod {named} and remove it")
    container_id = file.content.partition("\n")[0].strip()
    try:
        check_container_id(container_id)
    except CniError:
        return Left(file.name, f"its first line is no container ID; delete pod {named} and remove it")
    pod = _owner(pods, container_id)
    if pod is None:
        return Left(file.name, f"several pods have the address: {named}; delete all but one of them")
    return Move(file.name, address, container_id, pod.name, pod.namespace, main=address == _addresses(pod)[0])


def _by_address(pods: Iterable[Pod]) -> dict[Address, list[Pod]]:
    """The pods that have each address, by their status, or, while that is not written yet, by Calico's annotations."""
    found: dict[Address, list[Pod]] = {}
    for pod in pods:
        if pod.host_network:
            continue
        for address in dict.fromkeys(_addresses(pod)):
            found.setdefault(address, []).append(pod)
    return found


def _addresses(pod: Pod) -> list[Address]:
    annotated = [text for name in _POD_IPS for text in pod.annotations.get(name, "").split(",")]
    found = []
    for text in (*pod.ips, *annotated):
        try:
            found.append(Address.parse(text.strip().partition("/")[0]))
        except ValueError:
            continue
    return found


def _owner(pods: list[Pod], container_id: str) -> Pod | None:
    """Whose sandbox it is; None if nobody can tell."""
    own = [pod for pod in pods if pod.annotations.get(_SANDBOX) == container_id]
    going_on = [pod for pod in pods if pod.phase not in _OVER]
    if own or not going_on:
        return max(own or pods, key=lambda pod: pod.created)
    return going_on[0] if len(going_on) == 1 else None


def tunnel_address(pod_cidr: str) -> Address | None:
    """The address that the node's tunnel device has beside host-local: one more than the range's own in the last
    octet. None for IPv6, which has no such device. ValueError for what is no range.
    """
    cidr = Cidr.parse(pod_cidr)
    if cidr.version != V4:
        return None
    return Address(V4, cidr.number & ~0xFF | (cidr.number + 1) & 0xFF)


class Placement(Value):
    """An address and who is to hold it; `name` is that of its file."""

    address: Address
    attribute: Attribute
    name: str = ""

    @property
    def handle(self) -> str:
        return self.attribute.holder or ""


class Placed(Value):
    """The block afterwards; what was `taken` now, what its holder `had` before, and what is refused, and why."""

    block: Block
    taken: tuple[Placement, ...] = ()
    had: tuple[Placement, ...] = ()
    refused: tuple[tuple[Placement, str], ...] = ()


def place(block: Block, placements: Iterable[Placement]) -> Placed:
    """Put each address of the block into its holder's hands, unless somebody else has it.

    Attributes are looked up by handle, so that a block of 4,096 addresses is no matter of millions of comparisons.
    """
    attributes, allocations = list(block.attributes), list(block.allocations)
    sequence, sequences = block.sequence, dict(block.sequences)
    of_handle: dict[str | None, list[int]] = {}
    for number, attribute in enumerate(attributes):
        of_handle.setdefault(attribute.handle, []).append(number)
    taken: list[Placement] = []
    had: list[Placement] = []
    refused: list[tuple[Placement, str]] = []
    for one in placements:
        ordinal = block.ordinal(one.address)
        holder = allocations[ordinal]
        if holder is not None and (why := _why_not(one, attributes[holder])):
            refused.append((one, why))
        elif holder is not None:
            had.append(one)
        else:
            same = of_handle.setdefault(one.attribute.handle, [])
            index = next((known for known in same if attributes[known] == one.attribute), len(attributes))
            if index == len(attributes):
                attributes.append(one.attribute)
                same.append(index)
            allocations[ordinal], sequences[ordinal] = index, sequence
            sequence += 1
            taken.append(one)
    going = {block.ordinal(one.address) for one in taken}
    after = block.replace(
        allocations=tuple(allocations),
        unallocated=tuple([ordinal for ordinal in block.unallocated if ordinal not in going]),
        attributes=tuple(attributes),
        sequence=sequence,
        sequences=sequences,
    )
    return Placed(after, tuple(taken), tuple(had), tuple(refused))


def _why_not(placement: Placement, holder: Attribute) -> str:
    """Why an address that is not free cannot be had; "" if it is the holder's already."""
    if holder.holder == placement.handle:
        return ""
    if holder.released_at:
        return f"it was released at {holder.released_at} and is cooling down; try again later"
    pod = holder.secondary.get("pod")
    whose = f" of pod {holder.secondary.get('namespace')}/{pod}" if pod else ""
    return f"it is assigned to {holder.holder}{whose} already; delete one of the two pods"

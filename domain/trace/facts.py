"""What records say of a workload: what happened to it and when, and what there is of it now.

Invariant: pure; what has a time is an event, everything else a state.
"""

from __future__ import annotations

from domain.ipam.kept import KEPT_AS, KEPT_UNTIL, is_unused
from domain.moment import BadMoment, parse_go_string, parse_rfc3339
from domain.trace.subject import container_of
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from domain.ipam.block import Attribute, Block
    from domain.ipam.inventory import Inventory
    from domain.linux.link import Link
    from domain.trace.log_lines import LogLine
    from domain.trace.subject import Sought
    from domain.workload.endpoint import WorkloadEndpoint

LOG, ADDRESS, BLOCK, ENDPOINT, HANDLE, DEVICE = "log", "address", "block", "endpoint", "handle", "device"

_SHORT = 12  # characters of a container's id, as runtimes show it


class Event(Value):
    """`when` is in nanoseconds, None for what is so now. `level` and `call` are those of a line of the log."""

    when: int | None
    source: str
    text: str
    level: str = ""
    call: str = ""


def of_line(line: LogLine) -> Event:
    who = f"{line.plugin} {line.container[:_SHORT]}" if line.is_json and line.container else line.plugin
    return Event(line.when, LOG, f"{who}: {line.text}", line.level, line.call)


def of_records(inventory: Inventory, sought: Sought) -> tuple[Event, ...]:
    """In no order."""
    held = [
        (block, ordinal, holder)
        for block, _ in inventory.blocks.values()
        for ordinal in range(block.cidr.size)
        if (holder := block.holder(ordinal)) is not None
    ]
    mine = [one for one in held if sought.holds(one[2], one[0].cidr.at(one[1]))]
    found = [event for one in mine for event in _of_address(*one)]
    found += [_of_endpoint(endpoint) for endpoint in inventory.endpoints if sought.is_of(endpoint)]
    handles, others = {holder.holder for _, _, holder in mine}, {holder.holder for _, _, holder in held}
    for name, (handle, _) in inventory.handles.items():
        if name in handles or (name not in others and sought.has_container(container_of(name))):
            counts = ", ".join([f"{number} in {cidr}" for cidr, number in handle.blocks.items()]) or "none"
            found.append(Event(None, HANDLE, f"handle {name} counts addresses: {counts}"))
    return tuple(dict.fromkeys(found))


def _of_address(block: Block, ordinal: int, holder: Attribute) -> Iterator[Event]:
    address, place = block.cidr.at(ordinal), f"block {block.cidr} of {block.affinity or 'nobody'}"
    if block.claimed_at:
        yield Event(_moment(parse_rfc3339, block.claimed_at), BLOCK, f"{place} was claimed")
    if holder.released_at:
        text = f"{address} was released and is cooling down, {place}"
        yield Event(_moment(parse_rfc3339, holder.released_at), ADDRESS, text)
        return
    if is_unused(holder):
        about = holder.secondary
        until = f"until {about.get(KEPT_UNTIL, 'an unknown time')}, and no pod has it, {place}"
        yield Event(None, ADDRESS, f"{address} is kept for {about[KEPT_AS]} {until}")
        return
    said = ", ".join([f"{name} {text}" for name, text in holder.secondary.items() if name != "timestamp"])
    text = f"{address} was given to handle {holder.holder} ({said}), {place}"
    yield Event(_moment(parse_go_string, holder.secondary.get("timestamp", "")), ADDRESS, text)


def _of_endpoint(endpoint: WorkloadEndpoint) -> Event:
    networks = ", ".join([str(network) for network in endpoint.ip_networks]) or "no address"
    name = f"{endpoint.metadata.namespace}/{endpoint.metadata.name}"
    about = (
        f"{networks}, interface {endpoint.interface_name or 'unknown'}, container {endpoint.container_id or 'unknown'}"
    )
    text = f"endpoint {name} on node {endpoint.node}: {about}"
    return Event(_moment(parse_rfc3339, endpoint.metadata.created), ENDPOINT, text)


def _moment(read: Callable[[str], int], text: str) -> int | None:
    try:
        return read(text)
    except BadMoment:
        return None


def of_devices(endpoints: Iterable[WorkloadEndpoint], links: Iterable[Link]) -> tuple[Event, ...]:
    """Of endpoints of this host."""
    known = {link.name: link for link in links}
    found = []
    for endpoint in endpoints:
        if link := known.get(endpoint.interface_name):
            text = f"device {link.name} is there, {'up' if link.up else 'down'}, MTU {link.mtu}"
        else:
            text = f"device {endpoint.interface_name or 'of an unknown name'} is not there"
        found.append(Event(None, DEVICE, text))
    return tuple(found)


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """By time; what is so now comes last."""
    return tuple(sorted(events, key=lambda event: (event.when is None, event.when or 0)))

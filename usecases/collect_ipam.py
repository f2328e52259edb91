"""`ipam gc`: put right what an audit says can be, and take back what has leaked.

Leftovers look like work in progress: a handle that counts an address which no block holds is what an ADD leaves behind
that died, and also what one has that is alive. A handle has no time in it, so age comes from two looks: what is found
again, untouched, after the grace period is left over. And whoever is slower still finds, since every repair compares
and swaps, that he has lost a race and must read again.

Invariant: what was found once only is kept. Without `leaked` no address is taken from anybody.
"""

from __future__ import annotations

from domain.ipam.audit import UNREADABLE
from domain.ipam.audit_addresses import LONGEST_CALL
from domain.ipam.audit_blocks import VANISHED
from domain.ipam.errors import IpamError, StaleRequest
from domain.ipam.inventory import LEAK, Finding
from domain.moment import SECOND
from domain.value import Value
from ports.errors import Expired, PortError, Unavailable
from usecases.check_ipam import check_ipam
from usecases.ipam.repair import HANDLE_KINDS, repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ports.cluster import Cluster
    from usecases.ipam.set_aside import Keep
    from usecases.ipam.work import Work

DONE, KEPT, FAILED = "done", "kept", "failed"
_BUSY = "somebody is at work on it"
_KEPT = {VANISHED: "some of its addresses are held, or are cooling down"}


class Look(Value):
    """What was found at a time (nanoseconds since the epoch), as identities of findings."""

    at: int
    found: frozenset[tuple[str, str, str, str]]


class Sweep(Value):
    """`grace` is the time in seconds between two looks; `first` an earlier look, made by another run.

    With `leaked` addresses of containers, virtual machines and nodes that are gone are released too. `kinds`, if any,
    are the only kinds of findings to act on. `keep` makes a copy of a damaged record before something sound is put in
    its place; without it such records stay.
    """

    grace: float = LONGEST_CALL
    leaked: bool = False
    first: Look | None = None
    kinds: frozenset[str] = frozenset()
    keep: Keep | None = None


class Collected(Value):
    """What became of one finding: DONE, KEPT because somebody is at work on it, or FAILED; `why` says more."""

    finding: Finding
    outcome: str
    why: str = ""


def collectable(findings: Iterable[Finding], sweep: Sweep) -> tuple[Finding, ...]:
    """What a sweep would act on: damaged records first, blocks before what is rebuilt from them; then addresses before
    the blocks that they keep from being given back.
    """
    chosen = [
        finding
        for finding in findings
        if finding.repairable
        and (sweep.leaked or finding.level != LEAK)
        and (not sweep.kinds or finding.kind in sweep.kinds)
    ]
    return tuple(sorted(chosen, key=_turn))


def _turn(finding: Finding) -> int:
    if finding.kind != UNREADABLE:
        return 3 if finding.address is None else 2
    return 0 if finding.block is not None and finding.owner is None else 1


def collect_ipam(work: Work, sweep: Sweep, cluster: Cluster | None = None) -> tuple[Collected, ...]:
    """What became of everything that could be collected. The deadline has to allow for the grace period.

    Without `cluster` no virtual machine is known to be gone.

    Unavailable if the datastore goes away; what was done until then stays done.
    """
    first = sweep.first or _look(work, sweep, cluster)
    waited = (work.clock.now() - first.at) / SECOND
    if first.found and waited < sweep.grace:
        work.doing(f"waiting {sweep.grace - waited:.0f} s for the second look")
        work.clock.sleep(sweep.grace - waited)
    found = collectable(check_ipam(work, cluster).findings, sweep) if first.found else ()
    outcomes: list[Collected] = []
    corrected: set[str] = set()
    for number, finding in enumerate(found):
        work.doing(f"putting right {number + 1} of {len(found)}: {finding.subject}")
        if finding.identity not in first.found:
            why = f"not there, or not like this, {sweep.grace:g} s ago" if sweep.grace else "it has changed meanwhile"
            outcomes.append(Collected(finding, KEPT, why))
        elif finding.kind in HANDLE_KINDS and finding.handle in corrected:
            outcomes.append(Collected(finding, DONE))
        else:
            outcomes.append(_collect(work, finding, sweep))
            if outcomes[-1].outcome == DONE and finding.kind in HANDLE_KINDS:
                corrected.add(finding.handle)
    return tuple(outcomes)


def _look(work: Work, sweep: Sweep, cluster: Cluster | None) -> Look:
    report = check_ipam(work, cluster)
    found = [finding.identity for finding in collectable(report.findings, sweep)]
    return Look(report.inventory.now, frozenset(found))


def _collect(work: Work, finding: Finding, sweep: Sweep) -> Collected:
    try:
        done = repair(work, finding, sweep.keep, patient=sweep.grace >= LONGEST_CALL)
    except (Unavailable, Expired):
        raise
    except StaleRequest as error:
        return Collected(finding, KEPT, str(error))
    except (IpamError, PortError) as error:
        return Collected(finding, FAILED, str(error))
    return Collected(finding, DONE) if done else Collected(finding, KEPT, _KEPT.get(finding.kind, _BUSY))

"""What an operator can do when the pools that serve a request have no address left.

The answer's text says how far it came; this adds what was kept out of it: pools that do not serve the request, and
reserved addresses. Everything is read anew, since what the request went by may lag.

Invariant: a failure here never hides the one that is explained.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.pool_reasons import passed_over, reserved_in
from ports.errors import PortError
from usecases.ipam.allocation_terms import pool_request, read_surroundings, terms_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.request import AssignRequest
    from usecases.ipam.work import Work


def explain_shortage(work: Work, request: AssignRequest, version: int) -> str:
    """Empty where there is nothing to add."""
    try:
        found = read_surroundings(work, request)
        usable = terms_for(version, found).choice.usable
    except (PortError, IpamError) as error:
        work.log.debug("Cannot say more about the shortage of addresses", error=error)
        return ""
    said = (
        passed_over(found.pools, pool_request(request, version, found.labels)),
        reserved_in(usable, found.reservations),
    )
    return "; ".join([reason for reason in said if reason])

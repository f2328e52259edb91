"""What a runtime says an earlier ADD has answered, for a CHECK to compare with."""

from __future__ import annotations

from domain.cni.errors import INVALID_CONFIG, CniError
from domain.cni.result import parse_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.result import Result
    from usecases.calls.call import Call


def previous_result(call: Call) -> Result:
    """CniError 7 if `prevResult` cannot be read, or has no address."""
    try:
        previous = parse_result(call.netconf.prev_result, call.netconf.cni_version)
    except CniError as error:
        raise CniError(INVALID_CONFIG, f"prevResult cannot be read: {error}") from error
    if not previous.ips:
        raise CniError(INVALID_CONFIG, "prevResult has no ips to compare with")
    return previous

"""CNI errors: the numbers and the one shape in which a failed call answers its runtime.

Invariant: a number means what the CNI specification or, from 100 on, the original says.
"""

from __future__ import annotations

from domain.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

INCOMPATIBLE_VERSION = 1
UNKNOWN_CONTAINER = 3
INVALID_ENVIRONMENT = 4
IO_FAILURE = 5
DECODING_FAILURE = 6
INVALID_CONFIG = 7
INVALID_NETNS = 8
TRY_AGAIN_LATER = 11
NOT_AVAILABLE = 50  # STATUS: an ADD could not succeed now
PLUGIN_FAILURE = 100
INTERNAL = 999

SUCCESS = "success"
_OUTCOMES = {0: SUCCESS, TRY_AGAIN_LATER: "try-again-later", NOT_AVAILABLE: "try-again-later", INTERNAL: "internal"}


def outcome(code: int) -> str:
    """The class of an answer, 0 for one without an error, by who has to act.

    `success`; `try-again-later`: the runtime does; `bad-request`: the configuration or the environment is to be
    changed; `refused`: the kernel or another plugin says no; `internal`: anything else.
    """
    return _OUTCOMES.get(code) or ("bad-request" if 0 < code < TRY_AGAIN_LATER else "refused")


class CniError(Exception):
    """Printed as `{"code", "msg", "details"}`; details are left out when empty."""

    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def error_text(error: CniError, version: str = "") -> str:
    """What goes to stdout: indented by four, no newline at the end. "" leaves `cniVersion` out, as Calico does."""
    answer: dict[str, Json] = {"cniVersion": version} if version else {}
    answer |= {"code": error.code, "msg": error.message}
    if error.details:
        answer["details"] = error.details
    return dumps(answer, indent=4)

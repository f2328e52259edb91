"""Which of two API groups a cluster serves Calico's records in; they hold different objects.

Invariant: only an answer about groups decides, and it is asked for once at most.
"""

from __future__ import annotations

from adapters.kubernetes.api import Forbidden
from adapters.kubernetes.transport.seam import HttpRequest
from adapters.records.custom_names import V1, V3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.answers import Reply
    from adapters.kubernetes.api import Api
    from ports.clock import Deadline

DISCOVERY = HttpRequest("GET", "/apis")


class Groups:
    """`setting` is CALICO_API_GROUP: the text `projectcalico.org/v3` in any case, another (the old group), or ""."""

    def __init__(self, api: Api, setting: str) -> None:
        self._api = api
        self._chosen = (V3 if setting.lower() == V3 else V1) if setting else ""

    @property
    def known(self) -> str:
        """The group, "" if nobody has chosen one yet."""
        return self._chosen

    def choose(self, deadline: Deadline) -> str:
        """`V1` or `V3`. A server that does not let us ask has the old group, as the original assumes."""
        if not self._chosen:
            try:
                self._chosen = group_served(self._api.read([DISCOVERY], deadline)[0])
            except Forbidden:
                self._chosen = V1
        return self._chosen


def group_served(reply: Reply) -> str:
    """The new group only where the old one is not: with both, the new one is a view of the old one's objects."""
    groups = reply.object.get("groups")
    names = {group.get("name") for group in groups if isinstance(group, dict)} if isinstance(groups, list) else set()
    return V3 if V3.partition("/")[0] in names and V1.partition("/")[0] not in names else V1

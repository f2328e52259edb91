"""Waiting until something else is ready: an HTTP gate before networking, policy after it.

Invariant: every wait ends with its deadline.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.cni.gate_url import shown
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Deadline

PROBE_EVERY = 5.0  # seconds from one probe of a gate to the next; also what one probe may take


def refused_url(url: str, why: object) -> Refused:
    """The error for a gate that is neither an absolute URI nor an absolute path."""
    return Refused(f"invalid URL set for ReadinessGates:{shown(url)} Error:{why}")


class Readiness(ABC):
    @abstractmethod
    def gate(self, url: str, deadline: Deadline) -> None:
        """Return once a GET of the URL answers 200–399 (redirects followed); probe at once, then every 5 s.

        `ports.errors.Expired` when it is not ready by the deadline. `ports.errors.Refused` for a URL that is neither
        an absolute URI nor an absolute path: `invalid URL set for ReadinessGates:<url> Error:<why>`.
        """

    @abstractmethod
    def file_appears(self, path: str, deadline: Deadline) -> bool:
        """Wait until the path exists; False when it does not by the deadline. The directory may not exist yet."""

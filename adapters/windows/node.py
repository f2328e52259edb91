"""A Windows host's name, and the small files between calico-node and its plugins.

A path without a drive is on the current one, as for every program of Windows.

Invariant: nobody ever sees half of what `write` writes.
"""

from __future__ import annotations

import os

from adapters.regular_file import read_regular
from ports.errors import Refused, Unavailable
from ports.node import MissingFile, ThisNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address

LARGEST = 1 << 20


class WindowsNode(ThisNode):
    """Its addresses are not asked for: what a host has in a block is reserved there, and routes are HNS' own."""

    def addresses(self) -> tuple[Address, ...]:
        return ()

    def interface_of(self, address: Address) -> str:  # noqa: ARG002 - as above
        return ""

    def host_routes(self) -> tuple[tuple[Address, str], ...]:
        return ()

    def is_own_namespace(self, netns: str) -> bool:  # noqa: ARG002 - a plugin runs in no namespace of HNS
        return False

    def host_name(self) -> str:
        from _socket import gethostname

        return gethostname()

    def read(self, path: str) -> str:
        try:
            data = read_regular(path, LARGEST)
        except FileNotFoundError:
            raise MissingFile(path) from None
        except OSError as error:
            raise Refused(f"open {path}: {_reason(error)}") from error
        return data.decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def write(self, path: str, text: str) -> None:
        temporary = f"{path}.tortie-{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except (OSError, ValueError) as error:
            raise Unavailable(f"open {path}: {_reason(error)}") from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise Unavailable(f"remove {path}: {_reason(error)}") from error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "invalid argument"

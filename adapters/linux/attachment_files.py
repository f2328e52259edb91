"""The records of attachments as small files: `<directory>/<network>/<container>-<interface>.json`.

What they tell of does not outlive the machine's next start, so nobody waits for a disk here.

Invariant: a file is replaced whole, readable by root alone, whatever the umask; names come from a checked request, so
that none leads out of the directory.
"""

from __future__ import annotations

import os

from adapters.linux.directory import make_directory
from adapters.linux.errno_text import reason
from adapters.linux.node_files import NodeFiles, replace_file
from domain.bridge.attachment import attachment_text, read_attachment
from ports.attachments import Attachments
from ports.errors import PortError, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.attachment import BridgeAttachment
    from domain.bridge.conf import AttachmentId

_SUFFIX = ".json"


class AttachmentFiles(Attachments):
    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._files = NodeFiles()

    def _path(self, network: str, owner: AttachmentId) -> str:
        return os.path.join(self._directory, network, f"{owner.container_id}-{owner.ifname}{_SUFFIX}")

    def save(self, network: str, attachment: BridgeAttachment) -> None:
        path = self._path(network, attachment.id)
        try:
            make_directory(os.path.dirname(path))
            replace_file(path, attachment_text(attachment).encode("utf-8", "replace"), durable=False)
        except OSError as error:
            raise Unavailable(f"open {path}: {reason(error)}") from error

    def load(self, network: str, owner: AttachmentId) -> BridgeAttachment | None:
        return self._read(self._path(network, owner))

    def _read(self, path: str) -> BridgeAttachment | None:
        try:
            return read_attachment(self._files.read(path))
        except PortError:
            return None  # not there, a directory, or a file that may not be read: cleaning up goes on without it

    def forget(self, network: str, owner: AttachmentId) -> None:
        self._files.remove(self._path(network, owner))

    def all(self, network: str) -> tuple[BridgeAttachment, ...]:
        folder = os.path.join(self._directory, network)
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Unavailable(f"cannot list {folder}: {reason(error)}") from error
        read = [self._read(os.path.join(folder, name)) for name in names if name.endswith(_SUFFIX)]
        return tuple([attachment for attachment in read if attachment is not None])

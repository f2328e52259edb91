"""The records of attachments as small files: `<directory>/<network>/<container>-<interface>.json`.

A name that is too long for a file is cut, and ends with a hash of the whole. Two attachments may still come to one
file, as container `a`'s `b-c` and `a-b`'s `c` do: the later one has it.

What they tell of does not outlive the machine's next start, so nobody waits for a disk here.

Invariant: a file is replaced whole, readable by root alone, whatever the umask; names come from a checked request, so
that none leads out of the directory.
"""

from __future__ import annotations

import os

from adapters.linux.files import make_directory, reason
from adapters.linux.node_files import NodeFiles, replace_file
from domain.bounded_name import LONGEST_FILE_NAME, bounded_name
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
        name = bounded_name(f"{owner.container_id}-{owner.ifname}", LONGEST_FILE_NAME - len(_SUFFIX))
        return os.path.join(self._folder(network), name + _SUFFIX)

    def _folder(self, network: str) -> str:
        return os.path.join(self._directory, bounded_name(network, LONGEST_FILE_NAME))

    def save(self, network: str, attachment: BridgeAttachment) -> None:
        path = self._path(network, attachment.id)
        try:
            make_directory(os.path.dirname(path))
            replace_file(path, attachment_text(attachment).encode("utf-8", "replace"), durable=False)
        except (OSError, ValueError) as error:
            raise Unavailable(f"open {path}: {reason(error)}") from error

    def load(self, network: str, owner: AttachmentId) -> BridgeAttachment | None:
        found = self._read(self._path(network, owner))
        return found if found is not None and found.id == owner else None

    def _read(self, path: str) -> BridgeAttachment | None:
        try:
            return read_attachment(self._files.read(path))
        except PortError:
            return None  # not there, a directory, or a file that may not be read: cleaning up goes on without it

    def forget(self, network: str, owner: AttachmentId) -> None:
        path = self._path(network, owner)
        found = self._read(path)
        if found is None or found.id == owner:
            self._files.remove(path)

    def all(self, network: str) -> tuple[BridgeAttachment, ...]:
        folder = self._folder(network)
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            raise Unavailable(f"cannot list {folder}: {reason(error)}") from error
        read = [self._read(os.path.join(folder, name)) for name in names if name.endswith(_SUFFIX)]
        return tuple([attachment for attachment in read if attachment is not None])

"""Copies of damaged records, made before something sound is put in their place: one JSON object a line.

    {"record": "ipamblock 10-0-0-0-26", "fault": "…", "text": "…"}

Invariant: the file is new, mode 0600, and on the disk before the record is touched.
"""

from __future__ import annotations

import os
import time

from domain.json_text import dumps
from entrypoints.tortie.manifest_files import BadFile
from ports.record_title import record_title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.datastore import BadText

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Copies:
    """The file is made with the first copy. BadFile if it is there already or cannot be written."""

    def __init__(self, path: str) -> None:
        self.path = path or time.strftime("tortie-set-aside-%Y%m%dT%H%M%SZ.json", time.gmtime())
        self.made = False

    def keep(self, bad: BadText) -> None:
        line = dumps({"record": record_title(bad.key), "fault": bad.fault, "text": bad.text}) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC if self.made else _NEW
        try:
            descriptor = os.open(self.path, flags, 0o600)
            self.made = True
            with open(descriptor, "wb") as file:
                file.write(line.encode("utf-8", "replace"))
                file.flush()
                os.fsync(descriptor)
        except OSError as error:
            raise BadFile(f"{self.path}, for copies of damaged records: {error.strerror}") from None

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say about it."""
        return (f"What was set aside is in {self.path}",) if self.made else ()

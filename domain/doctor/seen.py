"""What a look at a host gives: the facts that the judgements beside this module go by.

Invariant: values only. Nothing in here knows how the host is reached, or whether it is this one.
"""

from __future__ import annotations

from domain.value import Value


class FileSeen(Value):
    """What is at a path, symbolic links followed. `kind` is `a regular file`, `a folder` and so on; `mode` has the
    permission bits; `size` is in bytes.
    """

    kind: str
    mode: int = 0
    owner: int = 0
    size: int = 0

    @property
    def is_file(self) -> bool:
        return self.kind == "a regular file"

    @property
    def is_folder(self) -> bool:
        return self.kind == "a folder"


class Uplink(Value):
    """The device of a default route."""

    version: int
    device: str
    mtu: int = 0


class CredentialsSeen(Value):
    """What a kubeconfig leads to. `token` is the bearer token, or "" for another way to sign in, which `way` names."""

    server: str
    way: str
    token: str = ""

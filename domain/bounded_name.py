"""Names that others choose, made short enough for the place that they go to: a file, a comment, a device's alias.

Invariant: pure; a name that fits stays as it is, and of those that do not no two become the same.
"""

from __future__ import annotations

from sys import version_info

# The C module alone: `hashlib` loads OpenSSL, which takes longer than the rest of a DEL.
sha512 = __import__("_sha512" if version_info < (3, 12) else "_sha2").sha512
LONGEST_FILE_NAME = 255  # bytes
_HASH = 32


def digest(text: str) -> str:
    """SHA-512 in hexadecimal digits."""
    found: str = sha512(text.encode("utf-8", "surrogateescape")).hexdigest()
    return found


def bounded_name(name: str, longest: int) -> str:
    """`name`, or as much of its beginning as `longest` bytes leave room for before `-` and a hash of the whole."""
    written = name.encode("utf-8", "surrogateescape")
    if len(written) <= longest:
        return name
    return f"{written[: longest - _HASH - 1].decode('utf-8', 'ignore')}-{digest(name)[:_HASH]}"

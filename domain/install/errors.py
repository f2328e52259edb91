"""Why an installation, or taking it back, cannot go on: one line that names the file or variable to change.

Invariant: the text holds nothing of a secret, a token or a configuration but names and single characters.
"""

from __future__ import annotations


class CannotInstall(Exception):
    """`str()` is the line for the operator; the process ends with exit code 1."""


class NothingInstalled(CannotInstall):
    """There is nothing to take back."""

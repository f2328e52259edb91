"""One plugin call as the use cases receive it: everything parsed, nothing left to read from the process.

Invariant: the deadline covers the whole call; undo has a budget of its own.
"""

from __future__ import annotations

from domain.cni.netconf import NetConf
from domain.cni.request import CniArgs, Request
from domain.value import Value
from ports.deadline import Deadline


class Call(Value):
    """`netconf_text` is the text on stdin, kept to be handed to other plugins unchanged."""

    request: Request
    args: CniArgs
    netconf: NetConf
    netconf_text: str
    deadline: Deadline

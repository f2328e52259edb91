"""What the installer's stories need from outside.

Invariant: all of them are ports; no story knows what stands behind one.
"""

from __future__ import annotations

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock
    from ports.host_files import HostFiles
    from ports.installed_program import InstalledProgram
    from ports.log import Log
    from ports.token_issuer import TokenIssuer


class Installer(Value):
    files: HostFiles
    program: InstalledProgram
    issuer: TokenIssuer
    clock: Clock
    log: Log

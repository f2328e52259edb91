"""Which program a process is."""

from __future__ import annotations

import pytest

from entrypoints.main import BRIDGE, COMMANDS, IPAM, NETWORK, OPERATOR, UNKNOWN, choose


@pytest.mark.parametrize(
    ("case", "argv", "command", "program", "arguments"),
    [
        ("DISP-001", "/usr/bin/calicoctl get nodes", "", COMMANDS, "ctl get nodes"),
        ("DISP-002", "/usr/bin/calicoctl get nodes", "ADD", COMMANDS, "ctl get nodes"),
        ("DISP-003", "calicoctl", "", COMMANDS, "ctl"),
        ("DISP-004", "/x/nodeagent~uds/uds mount /dest {}", "", COMMANDS, "component flexvol mount /dest {}"),
        ("DISP-005", "/host/driver/uds", "", COMMANDS, "component flexvol"),
        ("DISP-006", "uds init", "ADD", COMMANDS, "component flexvol init"),
        ("DISP-007", "/opt/cni/bin/calico-ipam", "ADD", IPAM, ""),
        ("DISP-008", "/opt/cni/bin/calico", "ADD", NETWORK, ""),
        ("DISP-009", "/usr/bin/calico", "", COMMANDS, ""),
        ("DISP-010", "calico component felix", "ADD", COMMANDS, "component felix"),
        ("DISP-011", 'calico {"name":"net","type":"calico"}', "ADD", NETWORK, '{"name":"net","type":"calico"}'),
        ("DISP-012", "calico -t", "VERSION", NETWORK, "-t"),
        ("DISP-013", "calico health --port=9099", "", COMMANDS, "health --port=9099"),
        ("without a verb", "calico -t", "", NETWORK, "-t"),
        ("without a verb", "calico --v", "", NETWORK, "--v"),
        ("without a verb", "calico version", "", COMMANDS, "version"),
        ("Windows", r"C:\bin\calico.exe", "ADD", NETWORK, ""),
        ("Windows", r"C:\bin\calico-ipam.exe", "ADD", IPAM, ""),
        ("Windows", r"C:\BIN\CALICO-IPAM.EXE", "ADD", IPAM, ""),
        ("Windows", r"C:\bin\tortie.exe get node", "", OPERATOR, "get node"),
        ("Windows", r"C:\bin\calicoctl.exe get nodes", "", COMMANDS, "ctl get nodes"),
        ("own names", "/opt/cni/bin/tortie get node", "", OPERATOR, "get node"),
        ("own names", "my-custom-cni", "ADD", BRIDGE, ""),
        ("own names", "bridge", "ADD", BRIDGE, ""),
        ("others", "/bin/Calico", "ADD", UNKNOWN, ""),
        ("others", "", "ADD", UNKNOWN, ""),
    ],
)
def test_which_program_it_is(case: str, argv: str, command: str, program: str, arguments: str) -> None:
    """DISP-001 to DISP-013, and the names of our own."""
    choice = choose(argv.split(), command)
    assert (choice.program, " ".join(choice.arguments)) == (program, arguments), case

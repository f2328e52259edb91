"""Faults that the lives of virtual machines have to notice, on tests/worlds/machine_simulate.py."""

from __future__ import annotations

from mutants.caught import Mutant

MUTANTS: dict[str, Mutant] = {
    "addresses are freed though another pod owns them": (
        "usecases/pods/leave_machine.py",
        "        if any(self._exists(owner) for owner in others):\n",
        "        if False:\n",
        0,
    ),
    "a pod that becomes an owner meanwhile is not seen": (
        "usecases/pods/leave_machine.py",
        "        unowned = [ordinal for ordinal in held if not _owners(block, ordinal)]\n",
        "        unowned = list(held)\n",
        626,
    ),
    "addresses are freed with every pod": (
        "usecases/pods/leave_machine.py",
        "    if over and departure.is_last(stored.record.blocks):\n        departure.free(stored)\n    elif",
        "    if departure.is_last(stored.record.blocks):\n        departure.free(stored)\n    elif",
        6,
    ),
    "each of the last two owners leaves the address to the other": (
        "usecases/pods/leave_machine.py",
        "        if over and departure.is_last(stored.record.blocks):  #",
        "        if False:  #",
        4,
    ),
    "a pod stays an owner after its DEL": (
        "usecases/pods/leave_machine.py",
        "        departure.leave(stored.record.blocks)\n",
        "        pass\n",
        1,
    ),
    "a pod that is gone is still an owner": (
        "usecases/pods/leave_machine.py",
        "        return not owner.name or if_there(",
        "        return True or if_there(",
        4,
    ),
    "the handle is not counted down": (
        "usecases/pods/leave_machine.py",
        "                latest = lower(self._work, latest, cidr, 0)\n",
        "                pass\n",
        0,
    ),
    "a machine is over with its instance": (
        "domain/workload/kubevirt.py",
        "        return machine.deleting\n",
        "        return machine.deleting or instance is None\n",
        105,
    ),
    "the target of a migration becomes the active owner at once": (
        "usecases/pods/machine_addresses.py",
        "OwnerUpdate(alternate=attributes) if self._is_target else",
        "OwnerUpdate(active=attributes) if self._is_target else",
        1,
    ),
    "a target without a source is given an address": (
        "usecases/assign_addresses.py",
        "        if machine.migration:\n",
        "        if False:\n",
        1,
    ),
    "a rival's address is answered, and stays the rival's": (
        "usecases/assign_addresses.py",
        "                held.own_adopted(allocation)\n",
        "                pass\n",
        6,
    ),
    "a slot is handed back whoever has it by now": (
        "usecases/pods/machine_addresses.py",
        "                if block is not None and earlier is not None and self._is_ours(holder):\n",
        "                if block is not None and earlier is not None:\n",
        795,
    ),
    "undoing frees an address that has another owner by now": (
        "usecases/ipam/free_addresses.py",
        " and attribute in (None, holder)\n",
        "\n",
        1168,
    ),
    "the late DEL of an earlier sandbox counts": (
        "domain/workload/kubevirt.py",
        "    return bool(pod.annotations.get(POD_IP)) and ",
        "    return False and ",
        2,
    ),
    "what a container has is forgotten while addresses are kept": (
        "usecases/release_addresses.py",
        "identity, cooldown) and held is None:\n",
        "identity, cooldown):\n",
        726,
    ),
    "garbage collection believes that a machine without a pod is gone": (
        "usecases/pods/known_machines.py",
        "            continue\n        return True\n    return False\n",
        "            continue\n    return False\n",
        104,
    ),
    "garbage collection frees an address whatever became of it": (
        "usecases/ipam/repair.py",
        " and machine_mark(block, ordinal) == finding.mark\n",
        "\n",
        255,
    ),
    "a promotion leaves the target in the other slot": (
        "usecases/ipam/owners.py",
        "OwnerUpdate(active=coming, alternate=source or None, clear_alternate=not source)",
        "OwnerUpdate(alternate=source or None)",
        3,
    ),
}

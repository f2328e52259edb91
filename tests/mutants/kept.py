"""Faults that the lives of names whose addresses are kept have to notice, on tests/worlds/kept_simulate.py."""

from __future__ import annotations

from mutants.caught import Mutant

MUTANTS: dict[str, Mutant] = {
    "a kept address is taken from a pod that is there": (
        "usecases/pods/kept_addresses.py",
        "        return bool(uid) and pod.uid != uid\n",
        "        return True\n",
        4,
    ),
    "a kept address is written over whoever has taken it meanwhile": (
        "usecases/pods/kept_addresses.py",
        "            if present is None or present.holder(ordinal) != place.holder:\n",
        "            if present is None:\n",
        230,
    ),
    "a kept address is handed back over whoever has it by now": (
        "usecases/pods/kept_addresses.py",
        "            if present is None or present.holder(place.ordinal) != self._request.attribute:\n",
        "            if present is None:\n",
        2346,
    ),
    "an earlier sandbox leaves the address that another one has": (
        "domain/ipam/kept.py",
        "        if holder.secondary.get(KEPT_BY) == container:\n",
        "        if True:\n",
        0,
    ),
    "a kept address is given up though a pod has taken it again": (
        "domain/ipam/kept.py",
        "    return Release(block.cidr.at(ordinal), holder.holder, block.sequences.get(ordinal, 0))\n",
        "    return Release(block.cidr.at(ordinal))\n",
        116,
    ),
    "the time of what a lost pod has left begins over and over": (
        "usecases/ipam/repair.py",
        "        if block is None or holder is None or str(block.sequences.get(ordinal, 0)) != finding.mark:\n",
        "        if block is None or holder is None:\n",
        562,
    ),
}

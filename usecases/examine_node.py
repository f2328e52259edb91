"""`tortie doctor`: look at everything that a node's containers need, and say of each whether it is in order.

A check that fails is a finding itself, and the others go on: an operator calls this when something is broken, and
then the most unlikely things are.

Invariant: nothing is changed, and each check has an end.
"""

from __future__ import annotations

from domain.doctor.diagnosis import error
from domain.value import Value
from usecases.doctor.look_at_files import (
    look_at_configuration,
    look_at_credentials,
    look_at_lock,
    look_at_log,
    look_at_metrics,
    look_at_name,
    look_at_others,
    look_at_plugins,
    look_at_replaced,
    look_at_versions,
)
from usecases.doctor.look_at_kernel import look_at_features, look_at_mtu, look_at_route, look_at_settings
from usecases.doctor.look_at_leftovers import look_at_reservations, look_at_strays
from usecases.doctor.look_at_records import look_at_datastore, look_at_node_record, look_at_pools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from domain.doctor.diagnosis import Diagnosis
    from ports.log import Log
    from usecases.doctor.patient import Patient

LONGEST = 30.0  # seconds for one check


class Check(Value):
    """`name` is what a check that fails by itself is called."""

    name: str
    look: Callable[[Patient], Iterable[Diagnosis]]


def examine_node(patient: Patient, log: Log) -> tuple[Diagnosis, ...]:
    """In the order in which one thing rests on another."""
    found: list[Diagnosis] = []
    for check in _checks(log):
        patient.doing(f"looking at {check.name}")
        found += _examined(check, patient)
    return tuple(found)


def _checks(log: Log) -> tuple[Check, ...]:
    return (
        Check("configuration", look_at_configuration),
        Check("other-configurations", look_at_others),
        Check("plugins", look_at_plugins),
        Check("versions", look_at_versions),
        Check("replaced", look_at_replaced),
        Check("node-name", look_at_name),
        Check("kubeconfig", look_at_credentials),
        Check("datastore", look_at_datastore),
        Check("node-record", look_at_node_record),
        Check("pools", look_at_pools),
        Check("kernel", look_at_features),
        Check("forwarding", look_at_settings),
        Check("default-route", look_at_route),
        Check("mtu", lambda patient: look_at_mtu(patient, log)),
        Check("leftover-devices", look_at_strays),
        Check("leftover-reservations", look_at_reservations),
        Check("lock-file", look_at_lock),
        Check("log-file", look_at_log),
        Check("metrics-dir", look_at_metrics),
    )


def _examined(check: Check, patient: Patient) -> tuple[Diagnosis, ...]:
    try:
        return patient.host.within(LONGEST, check.name, lambda: tuple(check.look(patient)))
    except Exception as failed:  # noqa: BLE001 - a check that falls over must not hide what the others find
        return (error(check.name, f"cannot be told: {failed or type(failed).__name__}", "mend what the text names"),)

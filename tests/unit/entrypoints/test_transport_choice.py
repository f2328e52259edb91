"""TORTIE_TRANSPORT: our own transports, or those on libraries where they are asked for and installed."""

from __future__ import annotations

import pytest

from adapters.linux.netlink.transports import load_lean, load_pyroute2
from entrypoints.wiring import dataplanes
from ports.errors import BadConfiguration


@pytest.mark.parametrize("environment", [{}, {"TORTIE_TRANSPORT": ""}, {"TORTIE_TRANSPORT": "lean"}])
def test_the_lean_transport_is_the_default(environment):
    assert dataplanes.netlink(environment) is load_lean


def test_the_librarys_transport_is_taken_when_asked_for():
    assert dataplanes.netlink({"TORTIE_TRANSPORT": "library"}) is load_pyroute2


@pytest.mark.parametrize("choice", ["Library", "pyroute2", "lean "])
def test_another_word_is_refused(choice):
    with pytest.raises(BadConfiguration) as refused:
        dataplanes.netlink({"TORTIE_TRANSPORT": choice})
    assert str(refused.value) == f'TORTIE_TRANSPORT "{choice}" is unknown; set "lean" or "library"'


def test_a_library_that_is_not_installed_is_named():
    def absent():
        raise ModuleNotFoundError("No module named 'pyroute2'")

    assert dataplanes.chosen_netlink({}, load_lean, absent) is load_lean
    with pytest.raises(BadConfiguration) as refused:
        dataplanes.chosen_netlink({"TORTIE_TRANSPORT": "library"}, load_lean, absent)
    assert str(refused.value) == (
        'TORTIE_TRANSPORT "library" needs the packages of the extra "linux": No module named \'pyroute2\''
    )

"""What a token refresher's environment says, and where its command is found."""

from __future__ import annotations

import pytest

from adapters.memory.log import RecordingLog
from domain.install.places import SERVICE_ACCOUNT
from entrypoints.sub_commands import run
from entrypoints.tortie.main import main
from entrypoints.wiring.token_refresher import _chance, renewal
from usecases.install.refresh_token import Renewal

NET_DIR = "/host/etc/cni/net.d"


def test_without_a_word_it_is_as_the_original_does_it():
    assert renewal({}, NET_DIR, RecordingLog()) == Renewal(NET_DIR, SERVICE_ACCOUNT)
    assert renewal({"CALICO_CNI_SERVICE_ACCOUNT": ""}, NET_DIR, RecordingLog()).account == "calico-cni-plugin"


def test_each_variable_counts():
    environ = {
        "CALICO_CNI_SERVICE_ACCOUNT": "mine",
        "CNI_TOKEN_REFRESH_INTERVAL": "30m",
        "SKIP_TLS_VERIFY": "true",
    }
    found = renewal(environ, NET_DIR, RecordingLog(), namespace="calico-system")
    assert found == Renewal(NET_DIR, SERVICE_ACCOUNT, "calico-system", "mine", 1800.0, insecure=True)


@pytest.mark.parametrize("word", ["", "True", "1", "yes"])
def test_only_one_word_turns_verification_off(word):
    """INST-025"""
    assert not renewal({"SKIP_TLS_VERIFY": word}, NET_DIR, RecordingLog()).insecure


@pytest.mark.parametrize("text", ["30", "never", "0s", "-1h"])
def test_an_interval_that_is_none_is_told_once_and_not_used(text):
    log = RecordingLog()
    assert renewal({"CNI_TOKEN_REFRESH_INTERVAL": text}, NET_DIR, log).interval is None
    (line,) = log.shown("error")
    assert line.startswith("Detected an invalid CNI_TOKEN_REFRESH_INTERVAL.")
    assert text in line


def test_chance_is_a_part_of_one():
    found = [_chance() for _ in range(1000)]
    assert 0 <= min(found) < 0.2
    assert 0.8 < max(found) < 1


NOWHERE = ["--once", "--net-dir", "/nowhere"]


@pytest.mark.parametrize(
    "call",
    [lambda: main(["refresh-token", *NOWHERE], {}), lambda: run(["component", "node", "monitor-token", *NOWHERE], {})],
)
def test_either_name_leads_to_it_and_a_process_in_no_pod_is_told_what_to_do(call, capfd):
    assert call() == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: Failed to read service account namespace file: ")
    assert said.err.count("\n") == 1
    assert "run as a pod" in said.err


def test_no_other_part_of_calico_node_is_here(capfd):
    assert run(["component", "node", "felix"], {}) == 1
    assert capfd.readouterr().err == "Error: `component node felix` is not part of this build\n"

"""The plugins' kubeconfig is renewed in time, whatever goes wrong in between."""

from __future__ import annotations

import pytest
import yaml

from adapters.memory.clock import MemoryClock
from adapters.memory.folder_watch import MemoryFolderWatch, Over
from adapters.memory.host_files import MemoryHostFiles
from adapters.memory.log import RecordingLog
from adapters.memory.token_issuer import MemoryTokenIssuer
from domain.install.kubeconfig import KubeconfigCluster
from domain.install.token import VALIDITY, RefreshPace
from domain.moment import SECOND
from ports.errors import Missing, Unavailable
from ports.host_files import HostFileError
from ports.token_issuer import IssuedToken
from usecases.install.refresh_token import Renewal, TokenRefresher, keep_fresh

FOLDER, WATCHED = "/host/etc/cni/net.d", "/var/run/secrets/kubernetes.io/serviceaccount"
PATH = f"{FOLDER}/calico-kubeconfig"
RENEWAL = Renewal(FOLDER, WATCHED)
TIMED = "Update of CNI kubeconfig triggered based on elapsed time."
WROTE = "Wrote updated CNI kubeconfig file."
FAILED = "Failed to update CNI token, retrying..."
ROTATED = "Projected service account token changed; refreshing CNI kubeconfig immediately"
QUARTER = VALIDITY / 4


class Host:
    """One node, and a refresher on it. `run` lets the waits of a script happen."""

    def __init__(self, renewal: Renewal = RENEWAL, chance: float = 0.0) -> None:
        self.clock = MemoryClock()
        self.log = RecordingLog()
        self.files = MemoryHostFiles()
        self.files.put(f"{FOLDER}/10-calico.conflist", "{}")
        self.issuer = MemoryTokenIssuer(self.clock)
        self.watch = MemoryFolderWatch(self.clock)
        self.refresher = TokenRefresher(renewal, self.issuer, self.files, self.clock, chance=lambda: chance)

    def run(self, *waits: tuple[str, ...]) -> None:
        self.watch.script = list(waits)
        self.refresher.prepare()
        with pytest.raises(Over):
            keep_fresh(self.refresher, self.watch, self.log)

    @property
    def requests(self) -> int:
        return len(self.issuer.asked)

    @property
    def user(self) -> dict:
        return yaml.safe_load(self.files.read(PATH))["users"][0]["user"]

    @property
    def cluster(self) -> dict:
        return yaml.safe_load(self.files.read(PATH))["clusters"][0]["cluster"]

    @property
    def messages(self) -> list[str]:
        return [entry.message for entry in self.log.entries]

    def pass_time(self, seconds: float) -> tuple[tuple[str, ...], ...]:
        """So many waits of a minute."""
        return ((),) * round(seconds / 60)


@pytest.fixture
def host():
    return Host()


class TestFirst:
    def test_the_file_is_written_at_once_for_its_owner_alone(self, host):
        """TOK-013 TOK-015"""
        host.run()
        assert host.issuer.asked == [("kube-system", "calico-cni-plugin", VALIDITY)]
        assert host.user == {"token": "calico-cni-plugin.token.1"}
        assert host.files.look(PATH).mode == 0o600
        assert host.messages == [TIMED, WROTE]

    def test_an_account_and_a_namespace_of_ones_own(self):
        """TOK-014"""
        host = Host(RENEWAL.replace(namespace="calico-system", account="mine"))
        host.issuer.accounts = {"calico-system/mine"}
        host.run()
        assert host.issuer.asked == [("calico-system", "mine", VALIDITY)]

    def test_the_servers_address_and_authority_are_those_that_we_use(self, host):
        host.run()
        assert host.cluster["server"] == "https://10.96.0.1:443"
        assert host.cluster["certificate-authority-data"]

    @pytest.mark.parametrize("ours", [True, False])
    def test_a_cluster_installed_without_verification_stays_so(self, ours):
        host = Host(RENEWAL.replace(insecure=ours))
        host.issuer.known_cluster = KubeconfigCluster("https://k:443", b"ca", insecure=not ours)
        host.run()
        assert host.cluster == {"server": "https://k:443", "insecure-skip-tls-verify": True}

    def test_what_no_file_can_hold_is_an_error_that_is_tried_again(self, host):
        host.issuer.known_cluster = KubeconfigCluster("https://k k")
        host.run((), ())
        assert host.messages == [TIMED, FAILED] * 3
        assert "cannot stand in a kubeconfig" in host.log.shown("error")[0]

    def test_whoever_cannot_tell_where_he_is_does_not_begin(self, host):
        host.issuer.own_namespace = lambda: (_ for _ in ()).throw(Missing("namespace"))
        with pytest.raises(Missing):
            host.refresher.prepare()


class TestTiming:
    @pytest.mark.parametrize(("chance", "hours"), [(0.0, 6), (0.5, 9), (0.999, 12)])
    def test_a_days_token_is_renewed_after_six_to_twelve_hours(self, chance, hours):
        host = Host(chance=chance)
        host.run(*host.pass_time(hours * 3600 - 120))
        assert host.requests == 1
        host.run(*host.pass_time(240))
        assert host.requests == 2
        assert host.user["token"].endswith(".2")

    def test_an_operators_interval(self):
        host = Host(RENEWAL.replace(interval=1800.0))
        host.run(*host.pass_time(3600 * 2 - 60))
        assert host.requests == 4

    def test_no_wait_is_longer_than_a_minute(self, host):
        host.run(*host.pass_time(600))
        assert max(host.watch.waited) == 60.0

    def test_time_in_which_the_machine_slept_counts(self, host):
        """One clock stands still meanwhile."""
        host.run(())
        host.clock._now += round((QUARTER + 1) * SECOND)
        host.run(())
        assert host.requests == 2

    def test_a_clock_set_back_delays_nothing(self, host):
        host.run(())
        host.clock._now -= 30 * 24 * 3600 * SECOND
        host.run(*host.pass_time(QUARTER))
        assert host.requests == 2

    def test_many_tokens_at_a_very_short_pace(self):
        """TOK-016"""
        host = Host(RENEWAL.replace(pace=RefreshPace(600, 600_000, 1e-9)))
        host.run(*[()] * 4)
        assert host.requests == 5
        assert sum(host.watch.waited) < 5


class TestRotation:
    def test_new_credentials_of_our_own_lead_to_a_new_token_at_once(self, host):
        """TOK-001 TOK-006"""
        host.run((WATCHED,), ())
        assert host.requests == 2
        assert host.messages == [TIMED, WROTE, ROTATED, WROTE]

    def test_a_change_elsewhere_does_not(self, host):
        host.run(("/calico-secrets",), ("/calico-secrets",))
        assert host.requests == 1

    def test_without_a_watch_the_timer_is_left_and_said_once(self, host):
        """TOK-002 TOK-003"""
        host.watch.refused = {WATCHED: "no such file or directory"}
        host.run(*host.pass_time(QUARTER + 60))
        assert host.requests == 2
        (warning,) = host.log.shown("warning")
        assert warning.startswith("Failed to set up CNI token directory watcher; refresh will rely on timer only")
        assert f"{WATCHED}: no such file or directory" in warning


class TestFailures:
    def test_a_request_that_fails_is_repeated_after_five_to_ten_seconds(self):
        """TOK-004"""
        host = Host(chance=0.5)
        host.issuer.fault = Unavailable("nobody listens")
        host.run((), ())
        assert host.watch.waited == pytest.approx([7.5, 7.5])
        assert host.messages == [TIMED, FAILED] * 3
        host.issuer.fault = None
        host.run((), ())
        assert host.user == {"token": "calico-cni-plugin.token.4"}

    def test_a_file_in_use_stays_while_requests_fail(self, host):
        host.run()
        before = host.files.read(PATH)
        host.issuer.fault = Unavailable("nobody listens")
        host.run(*host.pass_time(QUARTER + 60), (), ())
        assert host.files.read(PATH) == before

    def test_a_file_that_cannot_be_written_is_tried_again_in_seconds(self, host):
        def refuse(verb: str, path: str) -> None:
            if verb == "rename":
                raise HostFileError("rename", path, "input/output error")

        host.files.trouble = refuse
        host.run((), ())
        assert host.watch.waited == pytest.approx([5.0, 5.0])
        assert host.messages == [TIMED, "Failed to write CNI plugin kubeconfig file"] * 3
        assert host.files.look(PATH) is None
        assert host.files.names(FOLDER) == ("10-calico.conflist",)
        host.files.trouble = lambda verb, path: None
        host.run((), ())
        assert host.user

    def test_a_token_about_to_expire_is_renewed_in_seconds(self, host):
        """Such as the pod's own, of a server that knows no requests for tokens."""
        last = IssuedToken("old.own.token", 12.0, host.clock.now())
        host.issuer.request_token = lambda *_: last
        host.run((), ())
        assert host.watch.waited == pytest.approx([5.0, 5.0])

    def test_no_token_is_logged(self, host):
        host.run((), (WATCHED,))
        assert not [line for line in host.log.shown() if ".token." in line]

"""The kube-apiservers that one call uses: the datastore's, which goes by the environment, and the pods', which goes by
the network configuration. Most often they are one, and then one connection serves both, and what one has just read
the other need not read again.

Invariant: nothing is read or opened before it is first asked for.
"""

from __future__ import annotations

from entrypoints.wiring.this_program import ON_WINDOWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapters.kubernetes.api import Api
    from adapters.kubernetes.credentials.outside import Outside, Program
    from adapters.kubernetes.credentials.settings import Settings
    from domain.cni.netconf import NetConf
    from ports.clock import Clock
    from ports.cluster import Cluster
    from ports.datastore import Datastore
    from ports.token_issuer import TokenIssuer


class ApiServers:
    """`setting` reads one setting of the environment; `library` asks for the transport on the `kubernetes` package."""

    def __init__(  # noqa: PLR0913 - one parameter per thing that decides about a client
        self,
        netconf: NetConf,
        environment: Mapping[str, str],
        setting: Callable[[str], str],
        clock: Clock,
        *,
        library: Callable[[], bool],
        hasty: bool = False,
    ) -> None:
        self._netconf = netconf
        self._environment = environment
        self._setting = setting
        self._clock = clock
        self._library = library
        self._hasty = hasty
        self._open: list[tuple[Settings, Api]] = []

    def datastore(self) -> Datastore:
        from adapters.kubernetes.credentials.settings import read_flag
        from adapters.kubernetes.datastore import KubernetesDatastore

        api = self._datastore_api()
        group = self._setting("CALICO_API_GROUP")
        prefixes = self._environment.get("FELIX_INTERFACEPREFIX", "")
        # A DEL gives back what there is: an ADD from before the setting may have been given an address.
        no_ipam = read_flag("USE_POD_CIDR", self._setting) and self._environment.get("CNI_COMMAND") == "ADD"
        return KubernetesDatastore(api, self._clock, group=group, host_prefix=prefixes, no_ipam=no_ipam)

    def datastore_cluster(self) -> Cluster:
        """The cluster whose API server has the datastore."""
        from adapters.kubernetes.cluster import KubernetesCluster

        return KubernetesCluster(self._datastore_api())

    def _datastore_api(self) -> Api:
        from adapters.kubernetes.credentials.settings import read_datastore_settings

        inline = self._setting("KUBECONFIG_INLINE")  # what an operator's configuration file may have
        return self._api(lambda outside: read_datastore_settings(self._setting, outside, inline))

    def cluster(self) -> Cluster:
        from adapters.kubernetes.cluster import KubernetesCluster
        from adapters.kubernetes.credentials.settings import read_pod_settings

        return KubernetesCluster(self._api(lambda outside: read_pod_settings(self._netconf, outside)))

    def token_issuer(self, folder: str = "") -> TokenIssuer:
        """`folder` is where the account of this pod is, unless it is where Kubernetes puts it."""
        from adapters.kubernetes.api import Api
        from adapters.kubernetes.credentials.own_account import read_own_account
        from adapters.kubernetes.token_issuer import KubernetesTokenIssuer
        from adapters.kubernetes.transport.open_transport import open_transport

        outside = self._outside()
        if folder:
            outside = outside.replace(service_account=folder)

        def read() -> Settings:
            return read_own_account(outside)

        def connect(settings: Settings) -> Api:
            transport = open_transport(settings, read, outside, library=self._library())
            return Api(transport, self._clock, hasty=self._hasty)

        return KubernetesTokenIssuer(read, connect, outside.service_account, self._clock.now)

    def _api(self, read: Callable[[Outside], Settings]) -> Api:
        """The one there is already to the same server as the same user, else a new one."""
        from adapters.kubernetes.api import Api
        from adapters.kubernetes.transport.open_transport import open_transport

        outside = self._outside()
        settings = read(outside)
        for known, api in self._open:
            if settings.same_connection(known):
                return api
        transport = open_transport(settings, lambda: read(outside), outside, library=self._library())
        api = Api(transport, self._clock, hasty=self._hasty)
        self._open.append((settings, api))
        return api

    def _outside(self) -> Outside:
        from adapters.kubernetes.credentials.outside import Outside

        def run(program: Program, seconds: float) -> tuple[int, bytes]:
            if ON_WINDOWS:
                from adapters.windows.process import WindowsCommand
                from adapters.windows.process import run as run_on_windows

                words = (program.path, *program.arguments)
                ended = run_on_windows(
                    WindowsCommand(words, program.path, program.environment), self._clock.deadline(seconds), self._clock
                )
                return ended.status, ended.stdout
            from adapters.linux.process.child import ChildCommand
            from adapters.linux.process.child import run as run_command

            command = ChildCommand(program.path, program.environment, b"", program.path, program.arguments)
            finished = run_command(command, self._clock.deadline(seconds), self._clock)
            return finished.status, finished.stdout

        return Outside(self._environment, self._clock.now, self._clock.sleep, run)

"""What every DEL of Calico's plugins has in common: a limit for an outage, and lost settings are looked for.

Invariant: the configuration that the call has comes first; another one is tried only where that leads nowhere.
"""

from __future__ import annotations

from ports.errors import BadConfiguration, NoWay, PortError, Unauthorized, Unavailable
from usecases.calls.this_node import NoNodename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ports.runtime import Runtime
    from usecases.calls.call import Call

FIRST_ANSWER = 8.0  # seconds that a datastore has for its first answer, so that an outage is told within ten


def with_settings_of_add(delete: Callable[[Call, Runtime], None], call: Call, runtime: Runtime) -> None:
    """Do it; and again with the settings that the ADD had, if this configuration's lead to no datastore.

    What no settings lead to is told as something to try again, since the operator can put them back.
    """
    try:
        delete(call, runtime)
    except (PortError, NoNodename) as error:
        if not _lacks_settings(error, call):
            raise
        from usecases.calls.lost_settings import settings_of_add

        settings = settings_of_add(call.netconf, runtime)
        if settings is None:
            _raise_retriable(error, runtime)
            raise
        runtime.log.warning("DEL lacks settings; using those that are installed", lacks=error, used=settings.source)
        try:
            delete(call.replace(netconf=settings.netconf), runtime.former.runtime(settings.netconf))
        except (PortError, NoNodename) as still:
            _raise_retriable(still, runtime)
            raise


def _lacks_settings(error: Exception, call: Call) -> bool:
    """Where the embedded datastore's file is, an outage may be a path that is lost."""
    if isinstance(error, Unavailable) and call.netconf.datastore_type == "sqlite" and not call.netconf.sqlite_path:
        return True
    kinds = (BadConfiguration, NoWay, Unauthorized, NoNodename)
    return isinstance(error, kinds) or isinstance(error.__cause__, kinds)


def _raise_retriable(error: Exception, runtime: Runtime) -> None:
    if isinstance(error, (BadConfiguration, NoWay)):
        folder = runtime.former.installed().folder
        raise Unavailable(f"{error}; DEL found no other settings in {folder}: put back what ADD had") from error

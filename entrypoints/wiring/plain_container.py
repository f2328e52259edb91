"""The ports of an operator's command: the list of them, and a container where the package for one is not to be had.

The self-contained executable has no packages. `container` makes the same ports with dependency-injector.

Invariant: each port is opened on first use, once, from what has been overridden until then.
"""

from __future__ import annotations

from domain.cni.netconf import NetConf
from domain.value import Value
from entrypoints.logs import CallLog
from entrypoints.wiring import calico, datastores
from entrypoints.wiring.dataplanes import dataplane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_NOTHING: Mapping[str, Any] = {}


class Recipe(Value):
    """`make` gets the ports that `takes` and `named` name, the latter by parameter, and the `options` as they are."""

    make: Callable[..., object]
    takes: tuple[str, ...] = ()
    named: Mapping[str, str] = _NOTHING
    options: Mapping[str, Any] = _NOTHING


# What a program overrides with what it was given: `create` lets it make a datastore; `inline` has the certificates that
# stand in a configuration file themselves.
GIVEN: Mapping[str, Any] = {"netconf": NetConf(), "environment": {}, "create": False, "inline": datastores.NO_INLINE}

# An operator gives no DEL, so nobody asks for the ports of a former ADD.
RECIPES: Mapping[str, Recipe] = {
    "log": Recipe(lambda: CallLog("tortie")),
    "clock": Recipe(calico.clock),
    "exported": Recipe(datastores.exported, ("netconf", "environment")),
    "servers": Recipe(datastores.api_servers, ("netconf", "exported", "clock"), options={"hasty": True}),
    "sqlite_path": Recipe(lambda netconf: netconf.sqlite_path, ("netconf",)),
    "datastore": Recipe(
        datastores.datastore,
        ("exported", "sqlite_path", "clock", "servers"),
        named={"create": "create", "inline": "inline", "log": "log"},
        options={"hasty": True},
    ),
    "cluster": Recipe(datastores.cluster, ("netconf", "exported", "servers")),
    "datastore_cluster": Recipe(datastores.datastore_cluster, ("netconf", "exported", "servers")),
    "dataplane": Recipe(dataplane, ("netconf", "clock", "log", "exported")),
    "node": Recipe(calico.node),
    "lock_path": Recipe(lambda netconf: netconf.ipam_lock_file, ("netconf",)),
    "lock": Recipe(calico.lock, ("lock_path", "clock", "log")),
    "readiness": Recipe(calico.readiness, ("clock",)),
    "runtime": Recipe(calico.open_runtime, ("netconf", "environment", "log")),
    "ipam_plugin": Recipe(calico.ipam_plugin, ("netconf", "exported", "runtime")),
}


class Once:
    """Called, it gives what `make` makes, the same ever after; or what it has been overridden with."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: list[Any] = []

    def override(self, given: Any) -> None:
        self._made = [given]

    def __call__(self) -> Any:
        if not self._made:
            self._made = [self._make()]
        return self._made[0]


class PlainContainer:
    """Its attributes are the names of GIVEN and RECIPES."""

    def __init__(self) -> None:
        given = {
            name: self._once(Recipe(lambda value: value, options={"value": value})) for name, value in GIVEN.items()
        }
        self._ports = {**given, **{name: self._once(recipe) for name, recipe in RECIPES.items()}}

    def __getattr__(self, name: str) -> Once:
        """Only called for what is no attribute of the object itself."""
        if name.startswith("_") or name not in self._ports:
            raise AttributeError(name)
        return self._ports[name]

    def _once(self, recipe: Recipe) -> Once:
        def make() -> object:
            taken = [self._ports[name]() for name in recipe.takes]
            named = {parameter: self._ports[name]() for parameter, name in recipe.named.items()}
            return recipe.make(*taken, **named, **recipe.options)

        return Once(make)

"""The ports as dependency-injector providers, over the very functions in `wiring.calico` that plugins call.

For programs that live longer than a plugin call, and for tests: `Container().datastore.override(...)` swaps one port
and leaves the rest. (The package takes longer to load than a plugin call takes, so plugins do without.)

Invariant: declaring loads no adapter; a provider loads and opens its own on first use, and gives the same object ever
after.
"""

from __future__ import annotations

from dependency_injector import containers, providers

from entrypoints.wiring.plain_container import GIVEN, RECIPES


class Container(containers.DynamicContainer):
    """Its providers are the names of GIVEN, to be overridden with what the program was given, and those of RECIPES."""

    def __init__(self) -> None:
        super().__init__()
        for name, value in GIVEN.items():
            self.set_provider(name, providers.Object(value))
        for name, recipe in RECIPES.items():
            taken = [self.providers[port] for port in recipe.takes]
            named = {parameter: self.providers[port] for parameter, port in recipe.named.items()}
            self.set_provider(name, providers.Singleton(recipe.make, *taken, **named, **recipe.options))

"""Which sandboxes were deleted lately, kept in the registry: the original's key, so that its calls see ours.

Invariant: what `write` has returned from is what a later process reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ports.errors import Refused

KEY = r"Software\tigera\calico\PodDeleted"  # in HKEY_LOCAL_MACHINE


class DeletionStamps(ABC):
    """Errors: `ports.errors.Refused`."""

    @abstractmethod
    def all(self) -> dict[str, str]:
        """By container."""

    @abstractmethod
    def write(self, container_id: str, when: str) -> None: ...

    @abstractmethod
    def remove(self, container_id: str) -> None:
        """One that is not there is fine."""


class RegistryStamps(DeletionStamps):
    """`registry` is the module that Python has on Windows only."""

    def __init__(self, registry: Any = None) -> None:
        self._registry = registry

    def _load(self) -> Any:
        if self._registry is None:
            import winreg

            self._registry = winreg
        return self._registry

    def all(self) -> dict[str, str]:
        registry = self._load()
        found: dict[str, str] = {}
        try:
            with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, KEY) as key:
                for at in range(registry.QueryInfoKey(key)[1]):
                    name, value, _kind = registry.EnumValue(key, at)
                    found[name] = str(value)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _refused(error) from error
        return found

    def write(self, container_id: str, when: str) -> None:
        registry = self._load()
        try:
            with registry.CreateKey(registry.HKEY_LOCAL_MACHINE, KEY) as key:
                registry.SetValueEx(key, container_id, 0, registry.REG_SZ, when)
        except OSError as error:
            raise _refused(error) from error

    def remove(self, container_id: str) -> None:
        registry = self._load()
        try:
            with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, KEY, 0, registry.KEY_SET_VALUE) as key:
                registry.DeleteValue(key, container_id)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _refused(error) from error


def _refused(error: OSError) -> Refused:
    return Refused(rf"registry key HKLM\{KEY}: {error.strerror or error}")

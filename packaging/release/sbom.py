"""The bill of materials of an executable: what from elsewhere is inside, in which version, under which terms.

In CycloneDX's form, by its own library, which scanners for known vulnerabilities read.

Invariant: equal executables of one time have an equal bill; a thing that is inside and not in the table is refused.
"""

from __future__ import annotations

import hashlib
import json
import sys
import uuid
from datetime import UTC, datetime
from typing import NamedTuple

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL


class Kind(NamedTuple):
    """`terms` is an SPDX expression, `package` the name of the package that it comes from."""

    terms: str
    package: str
    type: str = "deb"


KNOWN = {
    "CPython": Kind("PSF-2.0", "python3.11"),
    "OpenSSL": Kind("Apache-2.0", "openssl"),
    "PyYAML": Kind("MIT", "pyyaml", "pypi"),
    "SQLite": Kind("blessing", "sqlite3"),
    "libgcc": Kind("GPL-3.0-or-later WITH GCC-exception-3.1", "gcc-12"),
    "musl": Kind("MIT", "musl"),
}
_LICENCES = LicenseFactory()


def bill(version: str, arch: str, executable: bytes, versions: str, when: int) -> str:
    """`versions` has a line for each thing inside, its name and its version; `when` is in seconds since 1970."""
    digest = hashlib.sha256(executable).hexdigest()
    whole = Component(
        type=ComponentType.APPLICATION,
        name="tortie",
        version=version,
        bom_ref=f"tortie-{arch}",
        description="Calico's CNI plugins in Python, as one static executable",
        licenses=[_LICENCES.make_with_expression("Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        properties=[Property(name="tortie:architecture", value=arch)],
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"tortie/{version}/{arch}/{digest}"))
    bom.metadata.timestamp = datetime.fromtimestamp(when, UTC)
    bom.metadata.component = whole
    inside = [component(*line.split(" ", 1)) for line in versions.splitlines()]
    for one in inside:
        bom.components.add(one)
    bom.register_dependency(whole, inside)
    text: str = JsonV1Dot6(bom).output_as_string()
    return json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def component(name: str, version: str) -> Component:
    if name not in KNOWN:
        sys.exit(f"packaging/release/sbom.py does not know the terms of {name}, which is in the executable")
    kind = KNOWN[name]
    debian = kind.type == "deb"
    purl = PackageURL(
        kind.type, "debian" if debian else None, kind.package, version, {"arch": "source"} if debian else None
    )
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        bom_ref=name,
        purl=purl,
        licenses=[_LICENCES.make_with_expression(kind.terms)],
    )

"""The product's version, in one place: the distribution's metadata, `calico -v` and the about text all read it here."""

from __future__ import annotations

VERSION = "v0.1.0"

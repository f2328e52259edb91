"""What the site has on its left: chapters, and in each the documents in the order in which one reads them.

Invariant: each document of the repository is on the site once. What no chapter names (a new page) goes to the end of
the chapter `Run it`, so that nobody has to know this file to write a page.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRST = "docs/index.md"  # leads to all of them, so no chapter has it
DECISIONS = "docs/decisions/index.md"  # is made, and lists those of its folder
CHAPTERS = {
    "Begin": ("README.md", "docs/first-pod.md", "docs/install.md", "docs/from-calico.md", "docs/upgrade.md"),
    "Run it": (
        "docs/operating.md",
        "docs/commands.md",
        "docs/kept-addresses.md",
        "docs/metrics.md",
        "docs/troubleshooting.md",
        "docs/runtimes.md",
        "docs/windows.md",
        "manifests/README.md",
    ),
    "Look it up": (
        "docs/configuration.md",
        "docs/annotations.md",
        "docs/bridge.md",
        "docs/differences.md",
        "docs/performance.md",
        "docs/benchmarks.md",
        "docs/glossary.md",
    ),
    "Change it": ("ARCHITECTURE.md", "CONTRIBUTING.md", DECISIONS, "docs/behaviours.md"),
}
SHORT = {
    "README.md": "Overview",
    "docs/differences.md": "Differences",
}  # for titles that say too little there, or too much
OF_NEW_PAGES = "Run it"


def documents() -> list[str]:
    """All that the site shows, but for pages that are made from others."""
    found = [*ROOT.glob("*.md"), *(ROOT / "manifests").rglob("*.md"), *(ROOT / "docs").glob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def chapters() -> dict[str, list[str]]:
    """Documents by chapter. Those that are named and not there (the benchmark's, before its first run) are left out."""
    there = set(documents())
    placed = {name for names in CHAPTERS.values() for name in names}
    found = {title: [name for name in names if name in there or name == DECISIONS] for title, names in CHAPTERS.items()}
    found[OF_NEW_PAGES] += sorted(there - placed - {FIRST})
    return found

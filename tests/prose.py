"""Lints prose with Vale, by the rules in ``.vale``: ``python -m tests.prose [FILE...]``.

Where Vale can be neither found nor built, nothing is checked, which one line says. In CI that fails.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane.build import CannotBuild, vale

ROOT = Path(__file__).parents[1]
WRITTEN = ("README.md", "CHANGELOG.md", ".github", "docs", "app", "policy")


def command(*arguments: str) -> list[str]:
    """The command that lints with our rules alone, whatever the user has configured. Raises CannotBuild."""
    return [str(vale()), "--no-global", f"--config={ROOT / '.vale.ini'}", *arguments]


def main(files: list[str]) -> int:
    """Lints the files, or all that we have written; the exit code."""
    try:
        lint = command("--output=line", *(files or WRITTEN))
    except CannotBuild as reason:
        print(f"prose is not checked: {reason}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    return subprocess.run(lint, check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

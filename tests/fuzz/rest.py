"""REST, fuzzed from its own description: schemathesis asks for all that the OpenAPI document names."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cases.serving import serving

ROOT = Path(__file__).parents[2]
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
CONFIGURATION = Path(__file__).parent / "schemathesis.toml"


def ask_everything(*flags: str) -> subprocess.CompletedProcess[str]:
    """Runs schemathesis over an example; what it says, and 0 for all that was right."""
    with (
        tempfile.TemporaryDirectory(prefix="quotaward-rest-") as directory,
        serving("--manifests", str(ROOT / "examples/two-teams"), log=Path(directory) / "serve.log") as server,
    ):
        url = f"http://127.0.0.1:{server.port}/openapi.json"
        command = [SCHEMATHESIS, "--config-file", CONFIGURATION, "run", url, "--no-color", *flags]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=directory)
        assert server.lives(), server.log_tail()
    return done


def fuzz_rest(minutes: float) -> int:
    """Asks for so long, and shows what came of it; 0 if all was right."""
    done = ask_everything("--max-time", str(int(60 * minutes)), "--max-examples", "1000")
    print(done.stdout[-6000:], done.stderr[-2000:])
    return done.returncode

"""Records what Kubernetes' own code makes of random quantities and pods, so that the tests need no Go.

Once per version of Kubernetes, from the top of the repository: ``python -m tests.unit.kubernetes.record``.
"""

import json
import os
import subprocess
from pathlib import Path

from tests.unit.kubernetes import questions

HERE = Path(__file__).parent
RECORDED = HERE / "answers.json"
MODULE = HERE.parents[1] / "controlplane" / "kubernetes"  # the versions that the control plane is built of


def answers() -> dict:
    """What was recorded, in the order of the questions."""
    return json.loads(RECORDED.read_text())


def record() -> None:
    """Asks anew and replaces what was recorded."""
    asked = json.dumps({"quantities": questions.quantities(), "pods": questions.pods()})
    command = ["go", "run", "-trimpath", str(HERE / "main.go")]
    env = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    said = subprocess.run(command, cwd=MODULE, env=env, input=asked, check=True, stdout=subprocess.PIPE, text=True)
    given = json.loads(said.stdout)  # quantities, then pods
    quantities, pods = (",\n".join(json.dumps(each, sort_keys=True) for each in kind) for kind in given.values())
    RECORDED.write_text(f'{{"quantities": [\n{quantities}\n], "pods": [\n{pods}\n]}}\n')


if __name__ == "__main__":
    record()

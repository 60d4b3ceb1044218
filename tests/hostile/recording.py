"""Records what happens, in a process of its own: tenants write more than a thread of the test could read."""

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any, Self

from tests.chaos.history import GROUP_ANNOTATION, MIRROR, PREEMPTIBLE, write
from tests.chaos.recorder import Recorder
from tests.controlplane.api import Api
from tests.controlplane.cluster import QUEUE
from tests.controlplane.objects import Object

_READ = (PREEMPTIBLE, MIRROR, QUEUE, GROUP_ANNOTATION)
_OF_SPEC = ("nodeName", "priority", "schedulingGates", "schedulingGroup", "resources", "nodeSelector")
_OF_STATUS = ("phase", "conditions", "nominatedNodeName")
_OF_CONTAINERS = ("resources", "restartPolicy")


class Recording:
    """Records while it is open; then the file has the history."""

    def __init__(self, api: Api, file: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._last, self._over = spawn.Value("d", 0.0), spawn.Event()
        given = (api.url, api.ca_file, api.token, file, self._last, self._over)
        self._process = spawn.Process(target=_record, args=given, daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._process.join(300)
        if self._process.exitcode != 0:
            self._process.kill()
            raise AssertionError("what has happened could not be recorded")

    def quiet_for(self) -> float:
        """Seconds since something has happened last."""
        return time.monotonic() - self._last.value


def _record(url: str, ca_file: Path, token: str, file: Path, last: Any, over: Any) -> None:
    os.nice(5)
    with Recorder(Api(url, ca_file, token), keep=kept) as recorder:
        while not over.wait(0.5):
            recorder.objects()  # raises where a watch has failed
            if recorder.records:
                last.value = recorder.records[-1].at
    write(recorder.records, file)


def kept(item: Object) -> Object:
    """Of an object what the checker reads."""
    meta = {key: value for key, value in item["metadata"].items() if key not in ("managedFields", "annotations")}
    meta["annotations"] = _some(item["metadata"].get("annotations", {}), _READ)
    if "containers" not in item.get("spec", {}):
        return item | {"metadata": meta}
    spec = _some(item["spec"], _OF_SPEC)
    for containers in ("containers", "initContainers"):
        spec[containers] = [_some(each, _OF_CONTAINERS) for each in item["spec"].get(containers, ())]
    return {"metadata": meta, "spec": spec, "status": _some(item["status"], _OF_STATUS)}


def _some(item: Object, keys: tuple[str, ...]) -> Object:
    return {key: item[key] for key in keys if key in item}

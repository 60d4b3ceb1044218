"""A folder of manifests as the source: every YAML and JSON file below it, read again when one changes.

A fault in one file or document is reported, and loses nothing else: the other objects are served. A faulty object that
was good before stays as it was.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import structlog
import watchfiles
import yaml

from app.garbage import spare_what_stays, undisturbed
from app.observability import metrics
from app.sources.defaults import with_defaults
from app.store.elastic_quotas import ELASTIC_QUOTAS, ElasticQuotaObject, elastic_quota_of
from app.store.heeded import OTHERS
from app.store.kind import Key, Kind
from app.store.kinds import KINDS, QUOTA_KINDS, SUCCESSORS
from app.store.pods import PODS
from app.store.quantities import InvalidObject
from app.store.queues import QUEUES
from app.store.reservations import RESERVATIONS
from app.store.store import Store
from policy.cluster.cluster import Cluster

log = structlog.get_logger(__name__)

ALIASED, SHORT = 10, 100_000
"""Factor by which a file may grow with its aliases written out, and the length that any may have (characters)."""
MANY = 1000
"""New or changed objects after which the garbage collector is told to skip what exists."""
SUFFIXES = (".yaml", ".yml", ".json")
OURS = (ELASTIC_QUOTAS.group, QUEUES.group, RESERVATIONS.group)
"""API groups of which all kinds are read: another kind in one of them is mistyped."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a file, or in a document of it (counted from 1; 0: the file)."""

    file: Path
    document: int
    text: str

    def __str__(self) -> str:
        """Describes the fault in one line for people."""
        return f"{self.file}, document {self.document}: {self.text}" if self.document else f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object of a manifest, as JSON and decoded."""

    kind: Kind
    key: Key
    file: Path
    raw: bytes
    obj: Any


@dataclass(frozen=True, slots=True)
class Folder:
    """The content of a folder: the objects, the files that could not be read, and all faults.

    ``damaged``: keys of objects that exist but cannot be used. ``strange``: objects whose kind looks mistyped, which
    are omitted like all that no rule reads. ``is_there``: whether the folder exists.
    """

    manifests: list[Manifest]
    damaged: set[tuple[str, Key]]
    unreadable: set[Path]
    problems: list[Fault]
    strange: list[Fault]
    is_there: bool


def read(
    directory: Path, legacy: str = "auto", kinds: Iterable[Kind] = KINDS, *, without: Path | None = None
) -> Folder:
    """Reads everything below a directory. Never raises: faults are among the problems.

    ``legacy`` is the setting ``groups.legacy``: whether kinds of the older group are read too: ``on``, ``off`` or
    ``auto``: only if there are none of the newer. ``kinds`` are those that are read. ``without`` is a file that is not.
    """
    by_name = {(kind.api_version, kind.name): kind for kind in kinds}
    folder = Folder([], set(), set(), [], [], directory.is_dir())
    seen: dict[tuple[str, str | None, str], Path] = {}
    trial = Cluster()  # one for all: each leaves a thousand objects to the garbage collector
    for file in files_below(directory):
        if file == without:
            continue
        try:
            documents = list(documents_of(file))
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            folder.unreadable.add(file)
            folder.problems.append(Fault(file, 0, f"cannot be read: {' '.join(str(error).split())}"))
            continue
        for number, document in documents:
            _take(folder, seen, trial, by_name, file, number, document)
    if not folder.is_there:
        folder.problems.append(Fault(directory, 0, "is not a directory"))
    _leave_out_legacy(folder, legacy)
    return folder


def _leave_out_legacy(folder: Folder, legacy: str) -> None:
    """Removes objects of the older group that are not to be read, and reports each."""
    newer: dict[str, set[Key]] = {successor.label: set() for successor in SUCCESSORS.values()}
    for manifest in folder.manifests:
        if manifest.kind.label in newer:
            newer[manifest.kind.label].add(manifest.key)
    kept = []
    for manifest in folder.manifests:
        successor = SUCCESSORS.get(manifest.kind.label)
        why = ""
        if successor is not None and legacy == "off":
            why = "groups.legacy is off"
        elif successor is not None and legacy == "auto" and newer[successor.label]:
            why = f"there are newer ones of {successor.group}; groups.legacy: on reads both"
        elif successor is not None and manifest.key in newer[successor.label]:
            why = f"{successor.group} has one of the same name"
        if why:
            name = f"{manifest.kind.name} {manifest.obj.metadata.namespace}/{manifest.obj.metadata.name}"
            folder.strange.append(Fault(manifest.file, 0, f"{name} of {manifest.kind.group} is not read: {why}"))
        else:
            kept.append(manifest)
    folder.manifests[:] = kept


def files_below(directory: Path) -> list[Path]:
    """Lists manifests below a directory, except hidden files: Kubernetes keeps the versions of a mounted map there."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.suffix in SUFFIXES
        and not any(part.startswith(".") for part in path.relative_to(directory).parts)
        and path.is_file()
    )


def _state(directory: Path) -> dict[Path, tuple[int, ...]]:
    """Returns the state of the folder and of each file, which any change alters. Skips files that disappear."""
    state: dict[Path, tuple[int, ...]] = {}
    for file in (directory, *files_below(directory)):
        with suppress(OSError):
            found = file.stat()
            state[file] = found.st_ino, found.st_mtime_ns, found.st_size
    return state


class ManifestSource:
    """Keeps the store up to date with a folder, which it reads at once."""

    def __init__(self, directory: Path, store: Store, legacy: str = "auto") -> None:
        self._directory = directory
        self._legacy = legacy
        self._store = store
        self._applied: dict[tuple[str, Key], Manifest] = {}
        self._taken_in = _state(directory)
        self.apply(read(directory, legacy, store.kinds))

    def example_question(self) -> str:
        """Returns a request of filter for the first waiting pod, as JSON; empty if none waits."""
        pods = [manifest for manifest in self._applied.values() if manifest.kind is PODS]
        for manifest in pods:
            pod = self._store.cluster.pods.get(str(manifest.key))
            if pod is not None and pod.pending:
                names = sorted(self._store.cluster.table.names)
                return msgspec.json.encode({"Pod": msgspec.Raw(manifest.raw), "NodeNames": names}).decode()
        return ""

    async def follow(self) -> None:
        """Reads the folder again after every change, until cancelled."""
        while True:
            try:
                await self._watch()
            except OSError as error:
                log.warning("the folder cannot be watched", directory=str(self._directory), error=str(error))
            await asyncio.sleep(0.5)

    async def _watch(self) -> None:
        """Watches the folder until another one replaces it."""
        watched = self._directory.stat().st_ino
        watching = False
        async for changes in watchfiles.awatch(
            self._directory, step=50, debounce=200, rust_timeout=500, yield_on_timeout=True
        ):
            # Changes before the watch began are not reported. But needless reading would slow down every answer.
            if changes or (not watching and await asyncio.to_thread(_state, self._directory) != self._taken_in):
                await self.take_in()
            watching = True
            if not self._directory.is_dir() or self._directory.stat().st_ino != watched:
                return

    async def take_in(self) -> None:
        """Reads the folder in a thread, and updates the store from it."""
        found = list[Folder]()  # a value that a thread returns is kept until the next garbage collection
        with undisturbed():
            self._taken_in = await asyncio.to_thread(_state, self._directory)
            await asyncio.to_thread(lambda: found.append(read(self._directory, self._legacy, self._store.kinds)))
            if self.apply(found.pop()) >= MANY:
                spare_what_stays()

    def apply(self, folder: Folder) -> int:
        """Updates the store from what was read; returns how many manifests were new or different.

        An object whose manifest has not changed keeps its current state.
        """
        changed = 0
        for problem in folder.problems:
            log.error("manifest cannot be used", problem=str(problem))
        metrics.MANIFEST_ERRORS.set(len(folder.problems))
        present = {(manifest.kind.label, manifest.key): manifest for manifest in folder.manifests}
        for identity, before in list(self._applied.items()):
            kept = identity in folder.damaged or before.file in folder.unreadable or not folder.is_there
            if identity in present or kept:
                continue
            self._store.delete(before.kind, before.key)
            del self._applied[identity]
        for identity, manifest in present.items():
            known = self._applied.get(identity)
            if known is None or known.raw != manifest.raw:
                self._store.upsert(manifest.kind, manifest.obj)
                changed += 1
            elif known.file == manifest.file:
                continue  # keep the old object, which the garbage collector skips
            self._applied[identity] = manifest
        for kind in self._store.kinds:
            self._store.complete(kind)
        return changed


def documents_of(file: Path) -> Iterator[tuple[int, Any]]:
    """Yields the objects of a file with the number of their document; splits lists.

    Raises ValueError for a file that aliases expand too much: a few lines can become gigabytes.
    """
    text = file.read_text(encoding="utf-8")
    longest = ALIASED * len(text) + SHORT
    documents = iter([json.loads(text)]) if file.suffix == ".json" else _yaml_documents(text)
    for number, document in enumerate(documents, start=1):
        longest -= _length(document, {})
        if longest < 0:
            raise ValueError("its aliases expand to too much")
        for item in _items(document):
            yield number, item


def _yaml_documents(text: str) -> Iterator[Any]:
    """Yields the documents of YAML. Raises ValueError also where the library does not check before it makes a value."""
    try:
        yield from yaml.load_all(text, Loader=yaml.CSafeLoader)
    except (LookupError, AttributeError) as error:
        raise ValueError(f"a value contradicts its tag: {error}") from error


def _length(value: Any, known: dict[int, int]) -> int:
    """Returns the approximate length of a value with all aliases written out."""
    if not isinstance(value, dict | list):
        return len(value) if isinstance(value, str | bytes) else 1
    if (length := known.get(id(value))) is None:
        known[id(value)] = 0  # a value that contains itself is refused when it is encoded
        parts = chain(value, value.values()) if isinstance(value, dict) else value
        length = known[id(value)] = 1 + sum(_length(each, known) for each in parts)
    return length


def _items(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _items(_item(item, document))
    elif document is not None:
        yield document


def _item(item: Any, of: dict[str, Any]) -> Any:
    """Adds the kind to an item of a typed list (a PodList), which names none."""
    kind = str(of.get("kind", ""))
    if isinstance(item, dict) and "kind" not in item and kind.endswith("List") and kind != "List":
        return {"apiVersion": of.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
    return item


def _take(
    folder: Folder,
    seen: dict[tuple[str, str | None, str], Path],
    trial: Cluster,
    kinds: Mapping[tuple[str, str], Kind],
    file: Path,
    number: int,
    document: Any,
) -> None:
    """Adds an object, or its faults, to what was read."""
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        folder.problems.append(Fault(file, number, "is not a Kubernetes object: apiVersion and kind are missing"))
        return
    kind = kinds.get((str(document["apiVersion"]), str(document["kind"])))
    if kind is None:
        _report_unread(folder, file, number, document)
        return
    where, readable = f"{kind.name} {_describe(document)}", True
    try:
        raw = msgspec.json.encode(with_defaults(kind, document))
        obj = kind.decoder.decode(raw)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        folder.problems.append(Fault(file, number, f"{where}: {error}"))
        key = _key_of(kind, document)
        if key is not None:
            folder.damaged.add((kind.label, key))
        if kind not in QUOTA_KINDS or key is None:
            return
        # An unreadable quota refuses everything; without it everything would be allowed. Only its names are taken, as
        # other metadata may be at fault.
        raw = msgspec.json.encode({"metadata": {"namespace": key[0], "name": key[1]}, "spec": str(error)})
        obj, readable = kind.decoder.decode(raw), False
    key = kind.key(obj.metadata)
    name = kind.label, obj.metadata.namespace, obj.metadata.name
    if name in seen:
        folder.problems.append(Fault(file, number, f"{where}: is already in {seen[name]}"))
        return
    seen[name] = file
    for text in _faults(trial, kind, obj) if readable else ():
        folder.problems.append(Fault(file, number, f"{where}: {text}"))
        folder.damaged.add((kind.label, key))
    if (kind.label, key) not in folder.damaged or isinstance(obj, ElasticQuotaObject):
        folder.manifests.append(Manifest(kind, key, file, raw, obj))


def _report_unread(folder: Folder, file: Path, number: int, document: dict[str, Any]) -> None:
    """Reports an object that is not read, if it looks mistyped, has an unknown version, or is of another project."""
    group, name = str(document["apiVersion"]).rpartition("/")[0], str(document["kind"])
    where = f"{name} {_describe(document)}"
    for kind in KINDS:
        if kind.group and (group, name) == (kind.group, kind.name):
            folder.problems.append(Fault(file, number, f"{where}: apiVersion: must be {kind.api_version}"))
            return
    if other := next((other for other in OTHERS if (other.group, other.kind) == (group, name)), None):
        folder.strange.append(Fault(file, number, f"{where} of {group} is not read: {other.instead}"))
    elif group in OURS:
        known = ", ".join(sorted(kind.name for kind in KINDS if kind.group == group))
        folder.strange.append(Fault(file, number, f"{where}: is not read: the kinds of {group} are {known}"))


def _faults(trial: Cluster, kind: Kind, obj: Any) -> tuple[str, ...]:
    """Returns the faults of a decoded object, by adding it to a separate cluster and removing it."""
    if not obj.metadata.name:
        return ("metadata.name: missing",)
    if isinstance(obj, ElasticQuotaObject):
        return elastic_quota_of(obj).errors
    try:
        kind.upsert(trial, obj, 0.0)
        kind.delete(trial, kind.key(obj.metadata))
    except InvalidObject as error:
        return (str(error),)
    return ()


def _key_of(kind: Kind, document: dict[str, Any]) -> Key | None:
    """Returns the key of an object that cannot be decoded, as far as it has one."""
    metadata = with_defaults(kind, document).get("metadata")
    if not isinstance(metadata, dict):
        return None
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace"))
    return str(metadata.get("uid")) if kind is PODS else (namespace, name) if kind.namespaced else name


def _describe(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return "without metadata"
    return "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))

"""A folder of manifests that a running server watches: one file per object, and those put together seen together."""

import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import yaml

from tests.cases.manifests import Manifest, Words, translate

Key = tuple[str, str, str]


def key_of(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


class Folder:
    """What stands in the folder now, and who is meant by a UID, gone or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.objects: dict[Key, Manifest] = {}
        self.names_of_uids: dict[str, str] = {}
        self._files: dict[Key, Path] = {}
        path.mkdir(parents=True, exist_ok=True)

    def create(self, words: Words, *more: Manifest) -> None:
        """Adds the objects that ``words`` (as in ``given``) describe and ``more``, or edits those that are there."""
        namespaces = [name for kind, _, name in self.objects if kind == "Namespace"]
        self.put([*translate(words, datetime.now(UTC), namespaces), *more])

    def put(self, manifests: Iterable[Manifest]) -> None:
        """Adds objects, all at one moment, so that nobody decides on half of them; edits come one after the other."""
        unseen = Path(tempfile.mkdtemp(prefix=".", dir=self.path))
        together = self.path / unseen.name.removeprefix(".")
        for manifest in manifests:
            key, metadata = key_of(manifest), manifest["metadata"]
            if key in self.objects:  # an edit
                metadata |= {name: self.objects[key]["metadata"][name] for name in ("uid", "creationTimestamp")}
            self.objects[key] = manifest
            self.names_of_uids[metadata["uid"]] = "/".join(filter(None, key[1:]))
            if key in self._files:
                self._edit(self._files[key], manifest)
            else:
                (unseen / _file_name(key)).write_text(_text(manifest))
                self._files[key] = together / _file_name(key)
        unseen.rename(together)

    def clear(self) -> None:
        """Removes everything that stands there, whoever put it there."""
        for entry in self.path.iterdir():
            unseen = entry.with_name(f".{entry.name}")
            entry.rename(unseen)
            shutil.rmtree(unseen)

    def delete(self, kind: str, name: str) -> None:
        namespace, _, name = name.rpartition("/")
        key = (kind, namespace, name)
        del self.objects[key]
        self._files.pop(key).unlink()

    def of_kind(self, kind: str) -> list[Manifest]:
        return [manifest for key, manifest in self.objects.items() if key[0] == kind]

    def pod(self, name: str) -> Manifest:
        namespace, _, name = name.partition("/")
        return self.objects["Pod", namespace, name]

    def uid(self, name: str) -> str:
        """The pod's UID; of the latest of that name, if it is gone."""
        found = [uid for uid, known in self.names_of_uids.items() if known == name]
        namespace, _, short = name.partition("/")
        there = self.objects.get(("Pod", namespace, short))
        return there["metadata"]["uid"] if there else found[-1]

    def _edit(self, file: Path, manifest: Manifest) -> None:
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(_text(manifest))
        unfinished.rename(file)  # the watch never sees half a file


def _file_name(key: Key) -> str:
    return "_".join(filter(None, key)).lower().replace("/", "_") + ".yaml"


def _text(manifest: Manifest) -> str:
    return str(yaml.safe_dump(manifest, sort_keys=False))

"""A folder of manifests that a running server watches: one file per object, each changed in one step."""

import uuid
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
        self._gone: set[Key] = set()
        path.mkdir(parents=True, exist_ok=True)

    def create(self, words: Words) -> None:
        """Adds the objects that ``words`` (as in ``given``) describe, or edits those that are there."""
        namespaces = [name for kind, _, name in self.objects if kind == "Namespace"]
        self.put(translate(words, datetime.now(UTC), namespaces))

    def put(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            key, metadata = key_of(manifest), manifest["metadata"]
            if key in self.objects:  # an edit
                metadata["creationTimestamp"] = self.objects[key]["metadata"]["creationTimestamp"]
            elif key in self._gone and metadata["uid"] in self.names_of_uids:  # somebody new of the same name
                metadata["uid"] = str(uuid.uuid4())
            self.objects[key] = manifest
            self.names_of_uids[metadata["uid"]] = "/".join(filter(None, key[1:]))
            self._write(key, manifest)

    def delete(self, kind: str, name: str) -> None:
        namespace, _, name = name.rpartition("/")
        key = (kind, namespace, name)
        del self.objects[key]
        self._gone.add(key)
        self._file(key).unlink()

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

    def _file(self, key: Key) -> Path:
        return self.path / ("_".join(filter(None, key)).lower().replace("/", "_") + ".yaml")

    def _write(self, key: Key, manifest: Manifest) -> None:
        target = self._file(key)
        unfinished = target.with_suffix(".unfinished")
        unfinished.write_text(yaml.safe_dump(manifest, sort_keys=False))
        unfinished.rename(target)  # the watch never sees half a file

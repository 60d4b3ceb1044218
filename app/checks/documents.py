"""The documents of a folder as written, including those that no rule reads."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.sources.manifests import SUFFIXES, Fault, documents_of, files_below

LONGEST, MOST = 2**16, 1000
"""Maximum number of bytes that are read of a file whose name is not a manifest's, and of such files."""
_MANIFEST = re.compile(
    rb"^\s*[\"']?apiVersion[\"']?\s*:\s*\S.*?^\s*[\"']?kind[\"']?\s*:\s*\S", re.MULTILINE | re.DOTALL
)
NO_MANIFESTS = (".md", ".txt.gz", ".py", ".go", ".sh", ".tpl", ".html")


@dataclass(frozen=True, slots=True)
class Document:
    """An object of a folder."""

    where: str
    kind: str
    namespace: str
    content: dict[str, Any]


def of_all(directory: Path) -> list[Document]:
    """Returns all objects of a folder that can be read and name a kind."""
    found = []
    for file in files_below(directory):
        try:
            documents = list(documents_of(file))
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            continue  # the folder's problems report it
        for number, content in documents:
            if isinstance(content, dict) and content.get("kind") and content.get("apiVersion"):
                metadata = content.get("metadata")
                given = metadata if isinstance(metadata, dict) else {}
                name = "/".join(str(given[part]) for part in ("namespace", "name") if given.get(part))
                where = str(Fault(file, number, f"{content['kind']} {name}".rstrip()))
                namespace = str(given.get("namespace") or "default")
                found.append(Document(where, str(content["kind"]), namespace, content))
    return found


def looks_like_manifests(directory: Path) -> list[str]:
    """Names the files that contain manifests but are not read because of their names, in a sentence each."""
    others = [
        path
        for path in sorted(directory.rglob("*"))
        if path.suffix not in (*SUFFIXES, *NO_MANIFESTS)
        and not any(part.startswith(".") for part in path.relative_to(directory).parts)
        and path.is_file()
    ]
    endings = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    return [f"{path}: is not read: its name must end in {endings}" for path in others[:MOST] if _holds_manifests(path)]


def _holds_manifests(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _MANIFEST.search(file.read(LONGEST)) is not None
    except OSError:
        return False

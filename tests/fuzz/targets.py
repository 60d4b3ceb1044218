"""What is fuzzed: each target takes bytes of anybody's, and raises where something happens that may not."""

import json
import tempfile
import time
from asyncio import AbstractEventLoop, new_event_loop
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from zlib import crc32

from app import checks
from app.inert import inert, inert_document
from app.settings import Settings
from app.sources.manifests import ManifestSource
from app.store.kinds import KINDS
from app.whatif import scenario
from tests.fuzz.seeds import ITEMS, changes, events, manifests, requests, reviews, texts
from tests.fuzz.tenants import tenants_objects, tenants_seeds
from tests.fuzz.world import Fault, World

LOOKS = (
    *("elasticquotas", "queues", "podgroups", "reservations", "plan", "decisions", "gates", "history", "evictions"),
    *("elasticquotas/a", "queues/q"),
)
LABELS = {kind.label.encode() for kind in KINDS}
LIST = b"list/"
UNSEEN = set("\u034f\u115f\u1160\u180b\u2800\u3164\ufe0f\uffa0")
VERBS = (b"filter", b"prioritize", b"preempt", b"bind")


@dataclass(frozen=True, slots=True)
class Target:
    """``run`` raises for what may not happen; ``seeds`` are good inputs.

    ``longest``: seconds of processor time that an input may take.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    longest: float = 2.0


@cache
def loop() -> AbstractEventLoop:
    """One for all inputs."""
    return new_event_loop()


@cache
def world() -> World:
    """To make one takes longer than to answer; each input finds it as it was made.

    Remedies are searched for a moment: each is a what-if, which is a target of its own.
    """
    return World(ITEMS, whatif={"remedy_time": 0.1})


def requests_and_events(data: bytes) -> None:
    """Lines: a verb and its body, a kind and a line of its watch, or a page of it; then all look at what came of it."""
    at = world()
    at.reset()
    for line in data.split(b"\n"):
        word, _, body = line.partition(b" ")
        if word in VERBS:
            _refused_without_a_trace(at, f"/extender/{word.decode()}", body)
        elif word in LABELS:
            loop().run_until_complete(at.deliver(word.decode(), body))
        elif word.removeprefix(LIST) in LABELS:
            loop().run_until_complete(at.list_anew(word.removeprefix(LIST).decode(), body))
        else:
            continue
        at.recount()
    _look_around(at, data)
    loop().run_until_complete(at.control())
    at.recount()
    _look_around(at, data[::-1])


def review(data: bytes) -> None:
    """A pod that is being created, as the API server shows it to the webhook."""
    at = world()
    at.reset()
    before = at.standing()
    status, content = loop().run_until_complete(at.ask("POST", "/admission/gate", data))
    if status == 200 and json.loads(content)["response"]["allowed"] is not True:
        raise Fault("the webhook keeps a pod from being created")
    if at.standing() != before:
        raise Fault("a review changed something")


def what_if(data: bytes) -> None:
    """The body of a question of what would be if."""
    at = world()
    at.reset()
    before = at.standing()
    loop().run_until_complete(at.ask("POST", "/api/v1/whatif", data))
    if at.standing() != before:
        raise Fault("a question of what would be changed what is")


def folder(data: bytes) -> None:
    """A file: served as manifests, checked, and played as a story for a while."""
    at = world()
    at.reset()
    with tempfile.TemporaryDirectory(prefix="quotaward-fuzz-") as directory:
        file = Path(directory) / "file.yaml"
        file.write_bytes(data)
        ManifestSource(Path(directory), at.store)
        checks.manifests(Path(directory))
        checks.scheduler_configuration(file)
        story = scenario.read(Path(directory))
    at.recount()
    playing = scenario.play_steps(story, Settings(), until=600)
    for _ in islice(playing, 200):
        pass
    loop().run_until_complete(at.control())
    _look_around(at, data)


def text(data: bytes) -> None:
    """Text of anybody's, as it is shown to people."""
    given = data.decode("utf-8", "surrogateescape")
    shown = inert(given)
    if not shown.isprintable() or inert(shown) != shown or UNSEEN & set(shown):
        raise Fault("something is left that is not seen as what it is")
    if len(shown) > 10 * len(given):
        raise Fault("the text has become long")
    document = {given: [given, {given: given}]}
    if json.loads(json.dumps(inert_document(document))) != {shown: [shown, {shown: shown}]}:
        raise Fault("a document is another document")


TARGETS = {
    "text": Target(text, texts),
    "requests-and-events": Target(requests_and_events, lambda: [*requests(), *events()]),
    "review": Target(review, reviews),
    "whatif": Target(what_if, changes),
    "manifests": Target(folder, manifests),
    "tenants": Target(tenants_objects, tenants_seeds, longest=60.0),  # steps are counted, which takes its time
}


def run(name: str, data: bytes) -> None:
    """Gives a target an input. Raises Fault, or whatever else the input led to."""
    started = time.process_time()
    TARGETS[name].run(data)
    if (taken := time.process_time() - started) > TARGETS[name].longest:
        raise Fault(f"the input took {taken:.1f} s of processor time")


def _refused_without_a_trace(at: World, path: str, body: bytes) -> None:
    before = at.standing()
    status, _ = loop().run_until_complete(at.ask("POST", path, body))
    if 400 <= status < 500 and at.standing() != before:
        raise Fault(f"{path} answered with {status}, and something has changed")


def _look_around(at: World, data: bytes) -> None:
    """Asks for one of the views, another for each input, as each takes longer than all the rest."""
    number = crc32(data)
    paths = ["/", "/metrics", *(f"/api/v1/{each}" for each in LOOKS)]
    if waiting := list(at.store.cluster.pending.values()):
        pod = waiting[number % len(waiting)]
        paths += [f"{root}/pods/{pod.namespace}/{pod.name}" for root in ("", "/api/v1")]
    loop().run_until_complete(at.ask("GET", paths[number % len(paths)]))

"""Runs one case: serves what is given, asks as kube-scheduler would, and waits for the answer that the case wants."""

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cases.expectations import Answer, mismatch, must_not_happen
from tests.cases.folder import Folder
from tests.cases.manifests import KINDS, Manifest, UnknownWord, Words, matches, seconds
from tests.cases.serving import Server, serving

ANSWER_SECONDS = 5.0  # a watch, a controller may still be on its way
WATCH_SECONDS = 2.0  # how long something that must not happen is watched for
POLL_SECONDS = 0.1
QUESTIONS = ("filter", "prioritize", "preempt", "bind", "get", "plan")
KIND_OF_WORD = {
    "nodes": "Node",
    "namespaces": "Namespace",
    "elasticQuotas": "ElasticQuota",
    "queues": "Queue",
    "podGroups": "PodGroup",
    "pdbs": "PodDisruptionBudget",
    "pods": "Pod",
}
FLAGS = {"controllers", "mode", "config", "insecure"}  # other options are keys of the configuration file


class CaseFailed(AssertionError):
    """The answer was not what the case wants, to the end."""


def run(case: Mapping[str, Any], directory: Path, servers: "Servers | None" = None) -> None:
    """A case with options has a process of its own; the others share one, as starting it takes longest."""
    if unknown := set(case) - {"id", "source", "options", "given", "when", "then"}:
        raise UnknownWord(f"case: {sorted(unknown)}")
    steps = steps_of(case)
    plans = any("plan" in step for step in steps) or (len(steps) == 1 and "preempt" in steps[0])
    if servers is not None and not case.get("options"):
        play(steps, *servers.serving_anew(case.get("given") or {}, plans=plans))
        return
    folder = Folder(directory / "manifests")
    folder.create(case.get("given") or {})
    flags = serve_flags(case.get("options") or {}, directory, plans=plans)
    with serving("--manifests", str(folder.path), *flags, log=directory / "serve.log") as server:
        play(steps, server, folder)


def play(steps: list[Words], server: Server, folder: Folder) -> None:
    start = time.monotonic()
    for step in steps:
        wait_until(start + seconds(step.get("at", 0)))
        take(step, folder, server)


class Servers:
    """Processes that serve case after case: one without controllers, for questions about victims, and one for the rest.

    To be entered as a context.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[bool, tuple[Server, Path]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def serving_anew(
        self, given: Words, manifests: Iterable[Manifest] = (), *, plans: bool = False
    ) -> tuple[Server, Folder]:
        """A server of ``given`` and these manifests, and of nothing else."""
        server, path = self._server(plans=plans)
        last = [file.stem for file in path.rglob("pod_case_*")]
        folder = Folder(path)
        folder.clear()
        for name in last:  # else an object of the same name would be an edit of the one before
            wait_for_verdict(server, name.removeprefix("pod_case_"), "unknown")
        wait_until_nothing_is_reserved(server)  # else a job of the same name would keep the nodes of the one before
        name = str(uuid.uuid4())
        folder.create(given, *manifests, last_of(name))
        wait_for_verdict(server, name, "bound")
        return server, folder

    def _server(self, *, plans: bool) -> tuple[Server, Path]:
        if plans not in self._running:
            directory = self._directory / ("plans" if plans else "others")
            path = Folder(directory / "manifests").path
            directory.mkdir(parents=True, exist_ok=True)
            flags = serve_flags({"reclaim.backoff": 1e-12}, directory, plans=plans)  # no case pays for one before it
            running = serving("--manifests", str(path), *flags, log=directory / "serve.log")
            self._running[plans] = self._stack.enter_context(running), path
        return self._running[plans]


def wait_for_verdict(server: Server, name: str, verdict: str) -> None:
    """Waits until the server says that of the pod which was put into the folder last."""
    path = f"/api/v1/pods/case/{name}"
    _wait_until(server, lambda: server.get(path).json["verdict"] == verdict, "the folder was not taken in")


def wait_until_nothing_is_reserved(server: Server) -> None:
    """Waits until the controllers have seen that nobody is there any more."""
    path = "/api/v1/reservations"
    _wait_until(server, lambda: not server.get(path).json["items"], "what was reserved was not lifted")


def _wait_until(server: Server, is_so: Callable[[], bool], else_what: str) -> None:
    deadline = time.monotonic() + ANSWER_SECONDS
    while not is_so():
        if time.monotonic() > deadline or not server.lives():
            raise CaseFailed(f"{else_what}:\n{server.log_tail()}")
        time.sleep(POLL_SECONDS / 4)


def last_of(name: str) -> Manifest:
    """A finished pod, which no rule counts: once it is known, so is all that was put into the folder with it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "case", "name": name, "uid": str(uuid.uuid4())},
        "spec": {"containers": []},
        "status": {"phase": "Succeeded"},
    }


def steps_of(case: Mapping[str, Any]) -> list[Words]:
    """The timeline, of one step where a case asks once; the case's own ``then`` belongs to the last question."""
    when, then = case["when"], case.get("then")
    steps = [dict(step) for step in when.get("steps", [when])]
    for step in steps:
        if unknown := set(step) - {"at", "create", "delete", "then", *QUESTIONS}:
            raise UnknownWord(f"step: {sorted(unknown)}")
    if then is not None:
        next(step for step in reversed(steps) if set(step) & set(QUESTIONS)).setdefault("then", then)
    return steps


def serve_flags(options: Words, directory: Path, *, plans: bool) -> list[str]:
    """Options as flags of ``serve``; those with a dot, or with keys of their own, go into a configuration file."""
    options = dict(options) | ({"controllers": "none"} if plans else {})
    flags, settings = [], {}
    for name, value in options.items():
        if name in FLAGS:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            flags += [f"--{name}"] if value is True else [f"--{name}", text]
        else:
            *sections, last = name.split(".")
            place = settings
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = value
    if settings:
        file = directory / "quotaward.yaml"
        file.write_text(yaml.safe_dump(settings))
        flags += ["--config", str(file)]
    return flags


def wait_until(moment: float) -> None:
    """The one wait for a time: a case's timeline is about when things happen."""
    time.sleep(max(0.0, moment - time.monotonic()))


def take(step: Words, folder: Folder, server: Server) -> None:
    if "delete" in step:
        delete(step["delete"], folder)
    if "create" in step:
        folder.create(created(step["create"]))
    for kind in QUESTIONS:
        if kind in step:
            ask = question(kind, step[kind], folder, server)
            settle(ask, step.get("then") or {}, server, f"{kind}: {step[kind]}")


def created(words: Words) -> Words:
    """What ``create`` says: any of the kinds of ``given``, or a pod alone."""
    return words if set(words) <= set(KINDS) else {"pods": [words]}


def delete(names: Any, folder: Folder) -> None:
    if not isinstance(names, Mapping):
        names = {"pods": names}
    for word, of_kind in names.items():
        for name in [of_kind] if isinstance(of_kind, str) else of_kind:
            folder.delete(KIND_OF_WORD[word], f"{name}/{name}" if word == "elasticQuotas" else name)


def question(kind: str, words: Any, folder: Folder, server: Server) -> Callable[[], Answer]:
    if kind in ("get", "plan"):
        path = words if kind == "get" else "/api/v1/plan"

        def ask() -> Answer:
            response = server.get(path)
            return Answer(kind, response.status, response.json_or_text)

        return ask
    arguments, nodes = extender_arguments(kind, words, folder)

    def call() -> Answer:
        response = server.ask(kind, arguments)
        return Answer(kind, response.status, response.json_or_text, nodes, folder.names_of_uids)

    return call


def extender_arguments(kind: str, words: Words, folder: Folder) -> tuple[dict[str, Any], list[str]]:
    """The body that kube-scheduler would send with ``nodeCacheCapable: true``, and the nodes it names."""
    manifest = folder.pod(words["pod"])
    pod = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    if kind == "preempt":
        candidates = {node: meta_victims(victims, folder) for node, victims in words["candidates"].items()}
        return {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": candidates}, list(candidates)
    if kind == "bind":
        metadata = pod["metadata"]
        who = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        return who | {"Node": words["node"]}, [words["node"]]
    nodes = words.get("nodes") or [node["metadata"]["name"] for node in folder.of_kind("Node")]
    return {"Pod": pod, "Nodes": None, "NodeNames": nodes}, nodes


def meta_victims(victims: list[str], folder: Folder) -> dict[str, Any]:
    """A candidate as default preemption proposes it, with the budgets' violations counted as it counts them."""
    budgets = folder.of_kind("PodDisruptionBudget")
    left = [budget["status"]["disruptionsAllowed"] for budget in budgets]
    violations = 0
    for victim in victims:
        violates = False
        for number, budget in enumerate(budgets):
            selector = budget["spec"]["selector"]["matchLabels"]
            if selector and matches(folder.pod(victim), budget["metadata"]["namespace"], selector):
                left[number] -= 1
                violates |= left[number] < 0
        violations += violates
    return {"Pods": [{"UID": folder.uid(victim)} for victim in victims], "NumPDBViolations": violations}


def settle(ask: Callable[[], Answer], then: Words, server: Server, what: str) -> None:
    """Asks until ``then`` holds; where something must not happen, asks on and sees that it does not."""
    start = time.monotonic()
    while wrong := mismatch(then, answer := ask()):
        happened = must_not_happen(then) and answer.status == HTTPStatus.OK
        if happened or not server.lives() or time.monotonic() > start + ANSWER_SECONDS:
            raise CaseFailed(report(what, then, wrong, answer, server))
        time.sleep(POLL_SECONDS)
    while must_not_happen(then) and time.monotonic() < start + WATCH_SECONDS:
        if wrong := mismatch(then, answer := ask()):
            raise CaseFailed(report(what, then, wrong, answer, server))
        time.sleep(POLL_SECONDS)


def report(what: str, then: Words, wrong: str, answer: Answer, server: Server) -> str:
    body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body, indent=1)
    return (
        f"{wrong}\n  asked  {what}\n  wanted {dict(then)}\n"
        f"  last answer: HTTP {answer.status}\n{body[:4000]}\n  end of the log:\n{server.log_tail()}"
    )

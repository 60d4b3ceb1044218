"""The what-if commands, for a running server's cluster and for a folder of manifests."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any

import yaml

from app.inert import say
from app.problems import Problem
from app.settings import Settings
from app.sources.manifests import documents_of, files_below
from app.whatif import changes, charts, scenario
from app.whatif.difference import difference_steps, numbers_steps, why_it_waits
from app.whatif.scenario import Scenario
from app.whatif.trial import Scene, run_steps
from policy.simulate.snapshot import snapshot
from policy.simulate.timeline import Story
from policy.stepwise import at_once


class CannotSimulate(Exception):
    """The question cannot be tried; the text says why."""


class CannotChange(Exception):
    """A change cannot be made to the existing objects; the text says why."""


def read_documents(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Reads the objects of files, and of all files below folders. Raises CannotSimulate."""
    found: list[dict[str, Any]] = []
    for path in paths:
        files = files_below(path) if path.is_dir() else [path]
        for file in files:
            try:
                found += [document for _, document in documents_of(file)]
            except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
                raise CannotSimulate(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    return found


def reference(text: str) -> dict[str, Any]:
    """Parses an object to remove: ``KIND/NAME`` or ``KIND/NAMESPACE/NAME``. Raises CannotSimulate."""
    kind, *names = text.split("/")
    if len(names) not in (1, 2) or not all((kind, *names)):
        raise CannotSimulate(f"{text!r} must be KIND/NAME or KIND/NAMESPACE/NAME")
    return {"kind": kind, "name": names[-1]} | ({"namespace": names[0]} if len(names) > 1 else {})


def scenario_of(directory: Path, settings: Settings) -> Scenario:
    """Reads a folder as a scenario. Raises CannotSimulate if it contains nothing usable."""
    read = scenario.read(directory, settings.groups.legacy, settings.jobs.rows)
    if not read.arrivals:
        raise CannotSimulate("; ".join(read.problems) or f"{directory} has no manifests")
    return read


def story_of(read: Scenario, settings: Settings, until: float, seconds: float) -> tuple[Story, list[str]]:
    """Plays a scenario, for so many seconds at most.

    Returns the story, and the pods that wait at the end with the reason.
    """
    stop = monotonic() + seconds
    story, cluster = at_once(scenario.play_steps(read, settings, until, lambda: monotonic() >= stop))
    waiting = [
        f"{pod.title} waits: {why_it_waits(cluster, pod)[1] or 'not tried yet'}"
        for pod in cluster.pods.values()
        if pod.pending and not pod.terminating
    ]
    return story, waiting


def difference_in(read: Scenario, settings: Settings, apply: list[Any], remove: list[Any]) -> dict[str, Any]:
    """Returns the effect of changes on a scenario's cluster. Raises CannotChange."""
    cluster = scenario.initial_cluster(read.arrivals, settings, read.start)
    scene = Scene(snapshot(cluster, read.start), settings.reserve.terms, 0.0)
    try:
        made = changes.read(apply, remove)
        before = at_once(numbers_steps(cluster))
        trial, otherwise = at_once(run_steps(scene, made)), at_once(run_steps(scene, ()))
    except Problem as problem:
        raise CannotChange(f"{problem.field}: {problem.detail}" if problem.field else problem.detail) from problem
    return at_once(difference_steps(before, trial, otherwise)).model_dump(mode="json", by_alias=True)


def print_story(story: Story, waiting: list[str]) -> None:
    """Prints the chart and the pods that wait at the end; before that, whether the story was given up."""
    if story.given_up_at is not None:
        pods = len(story.lives) + len(story.over) + story.never_came
        say(
            f"given up at {charts.time_text(story.given_up_at)}, as --time-limit was over:"
            f" {story.never_came} of {pods} pods had not appeared yet"
        )
    width = shutil.get_terminal_size((100, 24)).columns
    over = [
        f"{pod.namespace}/{pod.name} had finished before the start, and is not drawn" for pod in story.over.values()
    ]
    lines = [*charts.text_chart(story, width), "", *waiting, *over]
    while not lines[-1]:
        lines.pop()
    say(*lines)


def print_difference(document: dict[str, Any]) -> None:
    """Prints which pods would run, be evicted and wait, and which figures would change. Marks what happens anyway."""
    for each in document["admitted"]:
        say(f"runs: {each['pod']} on {each['node']}{_anyway(each)}")
    for each in document["evicted"]:
        whom = f" for {each['for']}" if each["for"] else ""
        say(f"evicted: {each['pod']} from {each['node']}{whom} ({each['reason']}){_anyway(each)}")
    for name in document["spared"]:
        say(f"spared: {name}, which would be evicted otherwise")
    for each in document["refused"]:
        say(f"waits: {each['pod']}: {each['message']}{_anyway(each)}")
    for each in document["quotas"]:
        say(f"ElasticQuota {each['namespace']}/{each['name']}: {_figures(each['before'], each['after'])}")
    for each in document["queues"]:
        say(f"Queue {each['name']}: {_figures(each['before'], each['after'])}")
    if not any(document[part] for part in ("admitted", "evicted", "spared", "refused", "quotas", "queues")):
        say("nothing would change")


def _anyway(each: dict[str, Any]) -> str:
    return " (anyway)" if each["anyway"] else ""


def _figures(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """Describes the figures that differ: ``used.cpu 3 -> 4``."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    parts = []
    for name in after:
        if isinstance(after[name], dict):
            for resource in sorted({*before[name], *after[name]}):
                was, becomes = before[name].get(resource, "0"), after[name].get(resource, "0")
                parts += [f"{name}.{resource} {was} -> {becomes}"] if was != becomes else []
        elif before[name] != after[name]:
            parts.append(f"{name} {before[name]} -> {after[name]}")
    return ", ".join(parts)

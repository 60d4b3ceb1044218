"""The ten reasons for which pods wait, on the page of the pod: the cause is named, and what is advised lets it in."""

import httpx
import pytest

from app.whatif.changes import merged
from tests.browser import story
from tests.browser.test_page import live
from tests.controlplane.processes import wait_until
from tests.unit.app.given import Json
from tests.unit.app.situations import TOLD, situations


@pytest.fixture(scope="module")
def served(serve):
    def nothing(folder):
        story.write(folder, "all", [])

    return serve(nothing, controllers="reclaim")


@pytest.mark.parametrize("name", TOLD)
def test_the_page_names_the_cause_and_a_remedy_that_lets_the_pod_in(name, served, open_page):
    rule, _, cause, remedy = TOLD[name]
    items = begin(served, situations()[name])
    page = live(open_page(f"{served.url}/pods/b/p"))
    page.get_by_role("listitem").filter(has_text=remedy).first.wait_for()
    assert rule in page.locator(".verdict").inner_text()
    assert says(page, cause)
    assert page.locator("ol").inner_text() == "\n".join(each["text"] for each in told(served)["next"])
    asked = next(item for item in items if item["metadata"]["name"] == "p")
    if rule:
        assert served.filter(asked) == []
    [advice, *_] = [each for each in told(served)["remedies"] if remedy in each["text"]]
    for command in advice["commands"]:
        assert command in page.locator("article").inner_text()
    story.write(served.folder, "all", changed(items, advice["change"]))
    wait_until(lambda: not says(page, cause), "the page says so no longer", detail=page.locator("article").inner_text)
    wait_until(lambda: served.filter(asked) == ["n1"], "the scheduler is told yes")
    bind = {"PodName": "p", "PodNamespace": "b", "PodUID": "b/p", "Node": "n1"}
    httpx.post(f"{served.url}/extender/bind", json=bind).raise_for_status()
    page.locator(".verdict.bound").wait_for()


def begin(served, items: list[Json]) -> list[Json]:
    """The folder has these objects, and nothing is left of those before."""
    story.write(served.folder, "all", [])
    wait_until(lambda: told(served)["verdict"] == "unknown", "all of it is gone")
    story.write(served.folder, "all", items)
    wait_until(lambda: told(served)["verdict"] != "unknown", "it has been seen")
    return items


def told(served) -> Json:
    return httpx.get(f"{served.url}/api/v1/pods/b/p").json()


def says(page, cause: str) -> bool:
    """Whether the page has these words, or each of these figures in its table."""
    text = page.locator("article").inner_text()
    return cause in text or all(figure.replace(" ", "\t") in text for figure in cause.split(", "))


def changed(items: list[Json], change: Json) -> list[Json]:
    """The objects after a change that people make; who is on the way out is gone by then."""
    stay = [item for item in items if "deletionTimestamp" not in item["metadata"]]
    known = {named(item): item for item in stay}
    for each in change["remove"]:
        del known[each["kind"], each.get("namespace"), each["name"]]
    for document in change["apply"]:
        known[named(document)] = merged(known.get(named(document)), document)
    return list(known.values())


def named(item: Json) -> tuple[str, ...]:
    return item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]

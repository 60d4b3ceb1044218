"""The page in a real Chromium: what people see, with the keyboard alone, and with a screen reader's eyes."""

from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.cli import app
from tests.browser import story
from tests.controlplane.objects import GPU
from tests.controlplane.processes import wait_until
from tests.unit.app.given import pod, quota

AXE = Path(__file__).parent / "vendor/axe.min.js"
NARROW = {"width": 360, "height": 740}
STRICT = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def everything(serve):
    return serve(story.everything)


@pytest.fixture(scope="module")
def many(serve):
    return serve(story.many, 1000)


def live(page):
    page.wait_for_selector("#connection.live")
    return page


def cards(page):
    return page.locator(".card:visible")


def accessibility(page):
    """What axe has against the page."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("tags => axe.run({ runOnly: tags })", STRICT)["violations"]
    return [f"{each['id']}: {node['target']} {node['failureSummary']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, {"viewport": NARROW}], ids=["light", "dark", "narrow"])
def test_nothing_keeps_anybody_from_reading(everything, open_page, look):
    page = live(open_page(everything.url, **look))
    for details in page.locator("summary").all():
        details.press("Enter")
    open_page.expected.add("404")
    for path in ("", "/pods/search/embed-3", "/pods/search/unknown"):
        if path:
            page.goto(everything.url + path)
        assert accessibility(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"


def test_the_keyboard_alone_reaches_everything(everything, open_page):
    page = live(open_page(everything.url))
    walked = []
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            """() => {
              const element = document.activeElement, box = element.getBoundingClientRect();
              const seen = document.elementFromPoint(box.x + box.width / 2, box.y + Math.min(box.height, 40) / 2);
              return element === document.body ? null
                : [element.id || element.innerText, element.contains(seen) || seen?.contains(element)];
            }"""
        )
        if focused is None or focused[0] == "REST":
            break
        walked.append(focused)
    names = [name for name, _ in walked]
    assert names[:4] == ["Skip to the content", "Quotaward", "Waiting", "Quotas"]
    assert [name for name in ("q", "show", "search/embed-3", "2 namespaces") if name not in names] == []
    assert [name for name, seen in walked if not seen] == [], "these were focused and could not be seen"
    page.locator(".skip").press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#q").focus()
    page.keyboard.type("search")
    wait_until(lambda: cards(page).count() == 2, "search and research alone")
    page.get_by_role("link", name="search/embed-3").press("Enter")
    page.wait_for_url("**/pods/search/embed-3")


def test_it_can_be_read_and_filtered_without_a_script(everything, open_page):
    page = open_page(everything.url, java_script_enabled=False)
    assert cards(page).count() == 8
    page.get_by_label("Namespace, queue, pod or Job").fill("vision")
    page.get_by_role("button", name="Filter").click()
    assert cards(page).count() == 1
    assert "borrowed 6" in cards(page).inner_text()


def test_a_change_touches_one_card_even_among_a_thousand_quotas(many, open_page):
    page = live(open_page(many.url))
    page.evaluate(
        """() => {
          const cardOf = node => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest(".card");
          window.touched = new Set();
          new MutationObserver(changes => {
            for (const { target } of changes) if (cardOf(target)) touched.add(cardOf(target).id);
          }).observe(document.getElementById("main"),
                     { attributes: true, characterData: true, childList: true, subtree: true });
        }"""
    )
    teams = [f"team-{number:04}" for number in range(101, 104)]
    for team in teams:
        many.filter(pod("new", team, {"cpu": "100m"}))
        page.locator(".card", has_text=team).get_by_text("used 1.6, min 2").wait_for()
    assert page.evaluate("touched.size") == len(teams)


def test_a_new_quota_appears_in_its_place_and_one_that_is_gone_goes(serve, open_page):
    def three(folder, *names):
        story.write(folder, "quotas", [quota(name, max={"cpu": 1}) for name in names])

    served = serve(three, "a", "c")
    page = live(open_page(served.url))
    three(served.folder, "b", "c", "d")
    wait_until(lambda: page.locator(".card h3").all_inner_texts() == ["b quota", "c quota", "d quota"], "b, c and d")


def test_what_somebody_is_busy_with_stays_as_it_is_when_something_changes(everything, open_page):
    page = live(open_page(everything.url))
    research = page.locator(".card", has_text="research")
    research.locator("summary").press("Enter")
    link = page.get_by_role("link", name="ranking/rank-7").first
    link.focus()
    everything.filter(pod("more", "biology", {"cpu": "1"}))
    research.get_by_text("used 61").first.wait_for()
    assert research.locator("details").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.innerText") == "ranking/rank-7"


def test_the_row_that_somebody_is_at_stays_theirs_when_others_come_and_go(serve, open_page):
    """Enter then opens the pod whose name was read, not one that has slipped into its place."""

    def some(folder, *names):
        pods = [story.waiting(name, "a", "0/1 nodes are available: 1 Insufficient cpu.", 9) for name in names]
        story.write(folder, "pods", [quota("a", max={"cpu": 1}), *pods])

    served = serve(some, "first", "here", "last")
    page = live(open_page(served.url))
    page.get_by_role("link", name="a/here").focus()
    some(served.folder, "here", "last")
    page.get_by_text("a/first").wait_for(state="detached")
    assert page.evaluate("document.activeElement.innerText") == "a/here"
    some(served.folder, "before", "first", "here", "last")
    page.get_by_role("link", name="a/first").wait_for()
    assert page.evaluate("document.activeElement.innerText") == "a/here"
    page.keyboard.press("Enter")
    page.wait_for_url("**/pods/a/here")


def test_a_thousand_quotas_are_filtered_while_one_types(many, open_page):
    page = live(open_page(many.url))
    assert page.locator(".card").count() == 1000
    took = page.evaluate(
        """async () => {
          const q = document.getElementById("q"), started = performance.now();
          q.value = "team-07";
          q.dispatchEvent(new Event("input", { bubbles: true }));
          while (document.querySelectorAll(".card:not([hidden])").length !== 100)
            await new Promise(requestAnimationFrame);
          return performance.now() - started;
        }"""
    )
    print(f"filtered after {took:.0f} ms")
    assert took < 1000
    assert page.locator("#matches").inner_text() == "100 of 1000 quotas and queues"
    assert page.url.endswith("?q=team-07")
    page.get_by_role("link", name="team-0700/b").wait_for()  # of all who wait it is not among the first hundred
    many.filter(pod("new", "team-0001", {"cpu": "500m"}))
    many.filter(pod("new", "team-0701", {"cpu": "500m"}))
    shown = page.locator(".card", has_text="team-0701").get_by_text("used 2, min 2")
    shown.wait_for()
    assert cards(page).count() == 100
    page.get_by_label("Show").select_option("waiting")
    wait_until(lambda: cards(page).count() == 20, "those that wait")


def test_the_tree_of_queues_is_folded_by_keys_and_stays_so(serve, open_page):
    """A fold outlives changes, and a visit to another page; a filter looks into it. Bars include what is below."""
    served = serve(story.company)
    page = live(open_page(served.url, viewport=NARROW))
    names = page.locator("#queues-rows .card:visible h3")

    def shown():
        return [name.split()[0] for name in names.all_text_contents()]

    everybody = ["company", "sales", "science", "team-1", "team-2", "guests"]
    assert shown() == everybody
    for name in ("company", "science"):
        text = page.locator(f'.card[data-name^="{name}"]').text_content()
        assert "used 3" in text
        assert "1 waiting" in text
    button = page.get_by_role("button", name="science: 2 queues below it")
    button.press("Enter")
    assert shown() == ["company", "sales", "science", "guests"]
    assert button.get_attribute("aria-expanded") == "false"
    assert accessibility(page) == []
    story.company(served.folder, pod("more", "one", {"cpu": "1"}, nodeName="n1"))
    page.locator('.card[data-name^="science"]').get_by_text("used 4").wait_for()
    assert shown() == ["company", "sales", "science", "guests"]
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.get_by_role("link", name="one/waits").press("Enter")
    page.wait_for_url("**/pods/one/waits")
    page.go_back()
    wait_until(lambda: shown() == ["company", "sales", "science", "guests"], "it is still folded")
    page.locator("#q").fill("team-1")
    wait_until(lambda: shown() == ["team-1"], "what is sought is shown although it is folded")
    page.locator("#q").fill("")
    button.press("Space")
    wait_until(lambda: shown() == everybody, "unfolded")


def test_where_storage_is_blocked_the_page_is_live_and_folds(serve, open_page):
    url = serve(story.company).url
    page = open_page(url)
    page.add_init_script(
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
    )
    page.goto(f"{url}/")
    button = live(page).get_by_role("button", name="science: 2 queues below it")
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "false"
    assert page.locator('.card[data-name^="team-1"]').is_hidden()


def test_pages_of_objects_lead_to_each_other_and_commands_are_copied(serve, open_page):
    """With the keyboard alone, on a phone and on paper; they follow what happens."""
    served = serve(story.company)
    page = live(
        open_page(served.url, viewport={"width": 390, "height": 844}, permissions=["clipboard-read", "clipboard-write"])
    )
    open_page.expected.add("404")
    for link, url in (
        ("team-1", "/queues/team-1"),
        ("science", "/queues/science"),
        ("company", "/queues/company"),
        ("sales", "/queues/sales"),
        ("company", "/queues/company"),
        ("one/runs", "/pods/one/runs"),
        ("The quota and the queue of one", "/namespaces/one"),
        ("n1", "/nodes/n1"),
    ):
        page.get_by_role("link", name=link, exact=True).first.press("Enter")
        page.wait_for_url(f"**{url}")
        live(page)
        assert accessibility(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than a phone"
    story.company(served.folder, pod("more", "one", {"cpu": "1"}, nodeName="n1"))
    page.get_by_text("used 4").wait_for()
    copy = page.get_by_role("button", name="Copy: kubectl describe node n1")
    copy.press("Enter")
    wait_until(lambda: copy.inner_text() == "Copied", "it says so")
    page.emulate_media(media="print")
    assert not copy.is_visible()
    assert page.get_by_text("used 4").is_visible()
    page.goto(served.url)
    page.emulate_media(media="screen")
    page.locator("#q").press("Control+V")
    wait_until(lambda: page.locator("#q").input_value() == "kubectl describe node n1", "what was copied")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("link", name="All queues in a compact table").press("Enter")
    live(page)
    assert accessibility(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than a phone"
    page.get_by_role("link", name="company/science/team-1").press("Enter")
    page.wait_for_url("**/queues/team-1")
    page.goto(f"{served.url}/nodes/nowhere")
    page.get_by_text("there is no node nowhere").wait_for()


def test_the_next_hours_are_drawn_and_read_as_a_table(serve, open_page):
    """With the keyboard alone, on a phone, on a dark screen and on paper."""
    served = serve(story.company_that_moves)
    page = live(open_page(f"{served.url}/queues/company", viewport={"width": 390, "height": 844}))
    strip = page.get_by_role("img", name="Waiting pods: 1 now, 0 in twelve hours")
    wait_until(lambda: page.reload() and strip.count() == 1, "the strip of the next hours")
    live(page)
    assert strip.bounding_box()["width"] > 200
    page.get_by_text("Who starts first").first.press("Enter")
    page.get_by_role("region", name="Who starts first").get_by_role("columnheader", name="Expected start").wait_for()
    table = page.get_by_role("region", name="Who starts first")
    assert "one/runs" in table.inner_text()
    table.focus()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Who starts first"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert accessibility(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than a phone"
    page.emulate_media(media="print")
    assert strip.is_visible()


def test_the_last_day_is_drawn_and_reads_as_a_table(serve, open_page):
    """With the keyboard alone, on a phone, on a dark screen and on paper; it follows what happens."""
    served = serve(story.company_with_a_quota)
    served.filter(pod("later", "one", {"cpu": "1000"}))
    page = live(open_page(f"{served.url}/namespaces/one", viewport={"width": 390, "height": 844}))
    plot = page.get_by_role("img", name="cpu: highest")
    wait_until(lambda: page.reload() and plot.count() == 1, "a plot of cpu")
    assert plot.bounding_box()["width"] > 200
    for path in ("/namespaces/one", "/quotas/one/quota", "/queues/company"):
        page.goto(served.url + path)
        live(page)
        page.get_by_text("The same as a table, by the hour").press("Enter")
        page.get_by_role("columnheader", name="Refused").wait_for()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert accessibility(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than a phone"
    page.emulate_media(media="print")
    assert page.get_by_role("img", name="Pods refused").is_visible()
    page.emulate_media(media="screen")
    page.goto(f"{served.url}/quotas/one/quota")
    wait_until(
        lambda: page.reload() and page.get_by_role("img", name="Pods refused: highest 1").count() == 1, "the refusal"
    )


def test_tables_are_sorted_by_the_keyboard_and_stay_so_when_something_changes(serve, open_page):
    served = serve(story.company)
    story.company(served.folder, *(pod(f"p{cpu}", "one", {"cpu": cpu}, nodeName="n1") for cpu in ("500m", "2", "10m")))
    page = live(open_page(f"{served.url}/namespaces/one", viewport={"width": 390, "height": 844}))
    table = page.locator("#placed")

    def requests():
        return table.locator("tbody td:last-child").all_inner_texts()

    wait_until(lambda: len(requests()) == 4, "all pods")
    by_requests = table.get_by_role("button", name="Requests")
    by_requests.press("Enter")
    assert requests() == ["cpu 0.01", "cpu 0.5", "cpu 2", "cpu 3"]
    assert table.get_by_role("columnheader", name="Requests").get_attribute("aria-sort") == "ascending"
    assert accessibility(page) == []
    by_requests.press("Enter")
    assert requests() == ["cpu 3", "cpu 2", "cpu 0.5", "cpu 0.01"]
    story.company(served.folder, *(pod(f"p{cpu}", "one", {"cpu": cpu}, nodeName="n1") for cpu in ("500m", "4", "10m")))
    wait_until(lambda: requests() == ["cpu 4", "cpu 3", "cpu 0.5", "cpu 0.01"], "the order that was chosen")
    page.get_by_text("As YAML").press("Enter")
    assert page.get_by_text("kind: Namespace").is_visible()
    assert accessibility(page) == []
    page.locator("#waiting").get_by_role("link", name="Pods").press("Enter")
    page.wait_for_url("**/namespaces/one?sort=pods#waiting")


def test_it_says_when_the_server_is_gone_and_catches_up_when_it_is_back(serve, open_page):
    def one(folder, most):
        story.write(folder, "one", [quota("a", max={"cpu": most})])

    served = serve(one, 1)
    page = live(open_page(served.url))
    served.process.kill()
    page.wait_for_selector("#connection.broken")
    one(served.folder, 7)
    served.start()
    page.get_by_text("used 0, max 7").wait_for()
    page.wait_for_selector("#connection.live")
    open_page.expected.add("ERR_")  # it could not connect meanwhile


def test_the_explanation_of_a_pod_changes_with_what_it_tells(serve, open_page):
    def one(folder, most):
        story.write(folder, "one", [story.node("n1"), quota("a", max={"cpu": most}), pod("p")])

    served = serve(one, 0)
    page = live(open_page(f"{served.url}/pods/a/p"))
    assert "refused by elastic-quota-max" in page.locator(".verdict").inner_text()
    one(served.folder, 5)
    page.locator(".verdict.admissible").wait_for()


def test_devices_of_claims_stand_beside_resources_wherever_a_quota_is_told(serve, open_page):
    served = serve(story.with_devices, 2)
    page = live(open_page(served.url))
    [card] = cards(page).all()
    assert f"{GPU}\nused 2, max 3" in card.inner_text()
    assert "cpu\nused 1, min 1" in card.inner_text()
    assert "deviceclass" not in page.locator("main").inner_text(), "it counts by one name"
    assert accessibility(page) == []

    [item] = httpx.get(f"{served.url}/api/v1/elasticquotas").json()["items"]
    assert (item["used"][GPU], item["max"][GPU]) == ("2", "3")
    figures = [line for line in httpx.get(f"{served.url}/metrics").text.splitlines() if f'resource="{GPU}"' in line]
    assert {(each.partition("{")[0], each.split()[-1]) for each in figures if "elastic_quota" in each} == {
        ("quotaward_elastic_quota_used", "2"),
        ("quotaward_elastic_quota_max", "3"),
    }
    assert f"{GPU}  2" in CliRunner().invoke(app, ["quotas", "--server", served.url]).output
    page.get_by_role("link", name="a/waits").first.click()
    page.wait_for_url("**/pods/a/waits")
    assert f"ElasticQuota max exceeded: {GPU}" in page.locator("main").inner_text()
    page.goto(served.url)
    live(page)
    story.with_devices(served.folder, 1)
    page.get_by_text("used 1, max 3").wait_for()


def test_hostile_names_run_nothing(serve, open_page):
    served = serve(story.hostile)
    page = live(open_page(served.url))
    assert page.get_by_text(story.HOSTILE).count() > 3
    page.get_by_role("link", name=story.HOSTILE).first.click()
    page.wait_for_url("**/pods/**")
    open_page.expected.add("404")  # a slash in a name is none that Kubernetes knows
    assert page.locator("img").count() == 0


def test_the_description_of_rest_is_shown_without_the_internet(everything, open_page):
    page = open_page(f"{everything.url}/docs")
    page.locator(".opblock").first.wait_for()
    page.get_by_text("/api/v1/elasticquotas", exact=True).wait_for()

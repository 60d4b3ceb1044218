"""Makes the pictures of the documentation anew: ``python -m tests.browser.pictures``. Needs Chromium."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser import story
from tests.browser.conftest import Served
from tests.unit.app.given import pod

IMAGES = Path(__file__).parents[2] / "docs/images"
WIDE = {"width": 1200, "height": 1180}
PICTURES = {
    "page": ("/", {"viewport": WIDE}),
    "page-dark": ("/?show=borrowing#quotas-title", {"viewport": WIDE, "color_scheme": "dark"}),
    "pod": ("/pods/search/embed-3", {"viewport": {"width": 900, "height": 900}}),
}


def main() -> None:
    """Serves the story and looks at it."""
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        folder = Path(directory) / "manifests"
        folder.mkdir()
        story.everything(folder)
        served = Served(folder, Path(directory) / "log")
        served.start()
        served.filter(pod("fold-9", "biology", {"cpu": "4"}))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (path, look) in PICTURES.items():
            page = browser.new_page(**look)
            page.goto(served.url + path)
            page.wait_for_selector("#connection.live")
            page.screenshot(path=IMAGES / f"{name}.png")
        served.process.stop()


if __name__ == "__main__":
    main()

"""One small build of the site, one server for it and one browser for all tests of a process."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.project.sources import REPOSITORY
from tests.site.requirements import BROWSER, HOW_TO_INSTALL

if TYPE_CHECKING:  # without a browser the tests are skipped, and Playwright need not be installed
    from playwright.sync_api import Browser, BrowserContext, Page


class Opened:
    """A page of the site in a fresh browser window, and what went wrong in it."""

    def __init__(self, context: "BrowserContext", address: str) -> None:
        """Opens a window that can load nothing but the site."""
        self.errors: list[str] = []
        self.address = address
        self._context = context
        context.set_default_timeout(120_000)  # on a busy machine a click can take seconds
        context.route(lambda url: not url.startswith(address), lambda route: route.abort())
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("console", lambda line: self.errors.append(line.text) if line.type in {"error", "warning"} else None)

    def page(self, name: str) -> "Page":
        """Goes to a page."""
        page = self._context.new_page()
        page.goto(self.address + name)
        return page

    def stepper(self) -> "Page":
        """Goes to the stepper and waits until it shows something."""
        page = self.page("stepper.html")
        page.wait_for_selector("#stepper[data-ready]")
        return page


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, but for the API, whose pages take most of the time."""
    try:
        from mkdocs.commands.build import build  # noqa: PLC0415 - an extra of its own
        from mkdocs.config import load_config  # noqa: PLC0415
    except ImportError:
        pytest.fail(HOW_TO_INSTALL)
    folder = tmp_path_factory.mktemp("site")
    config = load_config(
        str(REPOSITORY / "mkdocs.yml"), site_dir=str(folder), plugins=["search"], strict=False, nav=None, validation={}
    )
    build(config)
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """A browser without a window."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - see above
    except ImportError:
        pytest.fail(HOW_TO_INSTALL)
    if BROWSER is None:
        pytest.fail(HOW_TO_INSTALL)
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the browser's sandbox; it opens nothing but our own pages.
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: "Browser", address: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """A fresh window; a test may ask for another width by parameter. Errors in its console fail the test."""
    width = cast("int", getattr(request, "param", 1280))
    context = browser.new_context(viewport={"width": width, "height": 900})
    window = Opened(context, address)
    yield window
    context.close()
    assert window.errors == []


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Says nothing."""

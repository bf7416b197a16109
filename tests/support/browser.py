"""A real headless Chromium (Debian's ``chromium`` and ``chromium-driver``), driven by Selenium."""

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Browser:
    """A browser window. ``log`` and ``requests`` speak of the page that `open` opened last."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver: Any = driver  # some of its methods have no types
        self.page = Path()

    def open(self, page: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Opens a file in a window ``width`` CSS pixels wide, narrow ones as phones have them."""
        self.page = page
        size = {"width": width, "height": 812, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._driver.get("about:blank")
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.log()
        self.requests()
        self._driver.get(page.as_uri())

    def ask(self, script: str) -> Any:
        """What an expression of JavaScript gives."""
        return self._driver.execute_script(f"return {script}")

    def log(self) -> list[str]:
        """What the console says since the last call."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since the last call, but for the page's own."""
        events = [json.loads(entry["message"])["message"] for entry in self._driver.get_log("performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if url != self.page.as_uri() and not url.startswith("data:")]

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self._driver.print_page())

    def tree(self) -> list[tuple[str, str]]:
        """What assistive technology sees: (role, name) of every node that is not ignored."""
        found = self._driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in found if not node["ignored"]]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own. Skips the test where there is none, which in CI is a failure."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no Chromium: `make browser` as root installs Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        window = webdriver.Chrome(options=options, service=Service(driver, env={**os.environ, "HOME": profile}))
        try:
            yield Browser(window)
        finally:
            window.quit()

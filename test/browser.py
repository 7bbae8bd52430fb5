"""A headless Chromium for tests of pages: Debian's, driven by selenium. Never on the network."""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
MISSING = "no chromium, chromedriver or selenium: apt-get install chromium chromium-driver; pip install selenium"

needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER and importlib.util.find_spec("selenium")), reason=MISSING
)

_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    " --disable-background-networking --disable-component-update --disable-dev-shm-usage"
    " --force-color-profile=srgb --hide-scrollbars"
)


class Page:
    """A page that is open, and what a user does with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def open(self, path: Path) -> None:
        """Opens a file and waits until the viewer has drawn it."""
        self.driver.get(path.as_uri())
        self.until("return document.documentElement.dataset.ready")

    def until(self, script: str, seconds: float = 60) -> Any:
        """Waits until a script gives something true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise AssertionError(f"still not so: {script}\n{self.messages()}")
            time.sleep(0.02)
        return value

    def click(self, selector: str, number: int = 0) -> None:
        """A click in the middle of an element."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.by import By

        element = self.driver.find_elements(By.CSS_SELECTOR, selector)[number]
        ActionChains(self.driver).move_to_element(element).click().perform()

    def press(self, *keys: str) -> None:
        """Keys, on what has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def names(self) -> list[str]:
        """First lines of all boxes, in the order of drawing."""
        return self.run(
            "return [...document.querySelectorAll('.place > text:first-of-type')].map((t) => t.textContent)"
        )

    def text(self, selector: str) -> str:
        """Text of an element."""
        return self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def count(self, selector: str) -> int:
        """How many elements there are."""
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def messages(self) -> list[str]:
        """What the console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        found: list[str] = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self, path: Path) -> None:
        """A picture of the window."""
        self.driver.save_screenshot(str(path))


@contextmanager
def browser(
    profile: Path, width: int = 1440, height: int = 900, *, dark: bool = False
) -> Iterator[Page]:
    """A fresh browser with its profile in a folder of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in (*_FLAGS.split(), f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        yield Page(driver)
    finally:
        driver.quit()

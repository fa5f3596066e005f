"""Print the path of a Chromium that runs, after installing one if there is none.

In order: the one named by SSA_VIZ_CHROMIUM, a browser of this system, Debian's package where apt-get may
install it, Playwright's own download. Only the path goes to standard output. If none can be had, one line on
standard error says so and the exit status is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
INSTALL_SECONDS = 900


def runs(executable: str | None) -> bool:
    """Whether `executable --version` succeeds: a package can leave a stub that only says what to install."""
    return executable is not None and succeeds([executable, "--version"], seconds=60)


def succeeds(command: Sequence[str], *, seconds: float) -> bool:
    """Whether the command ends with status 0 in time; what it prints is dropped."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def from_system() -> str | None:
    """The first browser of this system that runs."""
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if runs(path)), None)


def from_apt() -> str | None:
    """Debian's package, where apt-get exists and needs no password."""
    if shutil.which("apt-get") is None:
        return None
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    if prefix and not succeeds([*prefix, "true"], seconds=10):
        return None
    say("Installing Chromium with apt-get.")
    # An update that fails for one source still leaves usable lists, so its status does not decide.
    succeeds([*prefix, *quiet, "update"], seconds=INSTALL_SECONDS)
    succeeds([*prefix, *quiet, "install", "-y", "--no-install-recommends", "chromium"], seconds=INSTALL_SECONDS)
    return from_system()


def from_playwright() -> str | None:
    """Playwright's own build, downloaded unless it is there already."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if not Path(path).exists():
        say("Downloading Chromium with Playwright.")
        succeeds([sys.executable, "-m", "playwright", "install", "chromium"], seconds=INSTALL_SECONDS)
    return path if runs(path) else None


def say(sentence: str) -> None:
    """One line on standard error; standard output is for the path alone."""
    print(sentence, file=sys.stderr, flush=True)


def main(sources: Sequence[Callable[[], str | None]] = (from_system, from_apt, from_playwright)) -> int:
    """Print the path from the first source that has one; the exit status."""
    chosen = os.environ.get("SSA_VIZ_CHROMIUM")
    if chosen:
        if runs(shutil.which(chosen)):
            print(shutil.which(chosen))
            return 0
        say(f"SSA_VIZ_CHROMIUM is {chosen!r}, which does not run. Correct it or unset it.")
        return 1
    for source in sources:
        path = source()
        if path is not None:
            print(path)
            return 0
    say("No Chromium was found and none could be installed. Install Chromium or Google Chrome and try again.")
    return 1


if __name__ == "__main__":
    sys.exit(main())

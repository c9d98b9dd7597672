"""Pictures redrawn in place on a terminal; what handlers print meanwhile appears above them.

Handlers print from their own threads. Their lines are collected and printed by whoever draws, since
two threads that move one cursor leave debris.
"""

from __future__ import annotations

import io
import sys
import threading
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any, Self

from detent.cli.screen import Screen


class Pictures:
    """A live display; `show` replaces the picture."""

    def __init__(self, screen: Screen) -> None:
        self._console = screen.console
        self._screen = screen
        self._printed = _Printed()
        self._stack = ExitStack()
        self._live: Any = None

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self._stack.enter_context(redirect_stdout(self._printed))
        if sys.stderr.isatty():
            self._stack.enter_context(redirect_stderr(self._printed))
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()
        self._live.stop()
        self._print(self._printed.rest())

    def show(self, picture: Any) -> None:
        """Draw a picture below what was printed since the last one."""
        self._print(self._printed.lines())
        self._live.update(picture, refresh=True)

    def _print(self, lines: list[str]) -> None:
        for line in lines:
            self._screen.verbatim(line)


class _Printed(io.TextIOBase):
    """Collects text from any thread, and gives it out in whole lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            self._text += text
        return len(text)

    def lines(self) -> list[str]:
        """The lines that are complete."""
        with self._lock:
            *whole, self._text = self._text.split("\n")
        return whole

    def rest(self) -> list[str]:
        """Everything that is left."""
        whole = self.lines()
        last, self._text = self._text, ""
        return [*whole, last] if last else whole

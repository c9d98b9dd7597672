"""Text of language models as it comes, for whoever watches an instance; nothing of it is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable

Listener = Callable[[str, str], None]  # block, text


class Deltas:
    """Hands pieces of text on; told on the dispatcher's loop, listened to from any thread."""

    def __init__(self) -> None:
        self._listeners: dict[str, tuple[Listener, ...]] = {}
        self._lock = threading.Lock()

    def __call__(self, instance: str, block: str, text: str) -> None:
        """Tell everybody who listens to the instance."""
        for listener in self._listeners.get(instance, ()):
            listener(block, text)

    def listen(self, instance: str, listener: Listener) -> Callable[[], None]:
        """Listen to an instance until the returned function is called."""
        with self._lock:
            self._listeners[instance] = (*self._listeners.get(instance, ()), listener)

        def stop() -> None:
            with self._lock:
                left = [each for each in self._listeners.pop(instance, ()) if each is not listener]
                if left:
                    self._listeners[instance] = tuple(left)

        return stop

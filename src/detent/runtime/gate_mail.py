"""Mail: what other writers, and whoever serves workers, left for the gates of this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from detent.kernel.gate.asks import GivenBack, ToGate, decode_to_gate

if TYPE_CHECKING:
    from detent.ports.store import Store


class Mail(NamedTuple):
    """What another writer sent to a gate here; letters to one gate are read in the order of `n`."""

    n: int
    id: str
    body: bytes


def open_mail(
    store: Store, mail: Sequence[Mail], *, unsure: bool
) -> tuple[list[tuple[Mail, ToGate]], list[str]]:
    """The letters in their order, and the ids of those that were acted on already.

    Some may have been, here or elsewhere, when one is `unsure`. Closings come first: one may be as
    old as an ask which it is to hold up.
    """
    waiting: list[Mail] = sorted(mail)
    done: list[str] = []
    if unsure:
        known = store.verdicts([letter.id for letter in waiting])
        done = [letter.id for letter in waiting if known.get(letter.id) is not None]
        waiting = [letter for letter in waiting if known.get(letter.id) is None]
    opened = [(letter, decode_to_gate(letter.body)) for letter in waiting]
    opened.sort(key=lambda each: not (isinstance(each[1], GivenBack) and each[1].keys))
    return opened, done

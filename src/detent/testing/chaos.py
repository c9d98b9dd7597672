"""`python -m detent.testing.chaos`: kill and pause random schedulers of a store while they work.

Three schedulers work on one PostgreSQL store. Every 0.2 to 2 seconds one of them is killed with
SIGKILL and replaced, or paused with SIGSTOP for a while, often for longer than its lease. All the
while new instances are started, with effects of every class of doubt, and a person decides what is
left in doubt. In the end all are left in peace; then the books of the world are compared with the
journal, and everything that was lost, doubled or is stuck is counted.

One thing no engine can prevent is counted apart: a process is paused inside its handler, is given
up, the provider or a person says that nothing happened, and then it wakes and its call goes out
after all (`late`). Only a provider that takes keys can tell.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random
from typing import NamedTuple

from detent.model.ids import derived_id
from detent.model.limits import CRASHES_PER_EFFECT
from detent.testing.auditing import audit
from detent.testing.cluster import Cluster, Member
from detent.testing.killed import expected_state, key_of
from detent.testing.outside import Outside, Wrong
from detent.testing.postgres import PostgresServer

MEMBERS = 3
OPEN_MOST = 60  # instances under way
AT_ONCE = 6
LEAST_S, MOST_S = 0.2, 2.0
LONGEST_PAUSE_S = 4.0  # more than two leases


class Report(NamedTuple):
    """What became of everything."""

    seed: int
    seconds: float
    kills: int
    pauses: int
    instances: int
    calls: int
    once_calls: int
    asked: int  # effects a person had to decide on
    late: int  # calls of paused processes that took effect after somebody had asked about them
    stuck: int
    otherwise: int  # instances that ended in another way than undisturbed
    wrong: str  # what the audit found: lost, doubled, a broken chain

    @property
    def failed(self) -> bool:
        """Whether something went wrong."""
        return bool(self.wrong or self.stuck or self.otherwise)

    def lines(self) -> list[str]:
        """The report for people."""
        share = self.asked / max(1, self.once_calls)
        found = self.wrong or "nothing lost, nothing doubled, chain and replays valid"
        return [
            f"seed {self.seed}: {self.seconds:.0f} s, {self.kills} kills, {self.pauses} pauses",
            f"{self.instances} instances, {self.calls} calls, {self.once_calls} of them once only",
            f"a person was asked {self.asked} times ({share:.2%} of once-only calls)",
            f"stuck: {self.stuck}; ended otherwise: {self.otherwise}; late: {self.late}",
            found,
        ]


class _Storm:
    """What happens to the members; everything random comes from the seed."""

    def __init__(self, cluster: Cluster, rng: Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._asleep: list[tuple[float, Member]] = []
        self.kills = 0
        self.pauses = 0

    def strike(self) -> float:
        """Do something to somebody; how long to wait then."""
        rng, cluster = self._rng, self._cluster
        awake = [member for member in cluster.members if not member.paused]
        if len(awake) > 1 and rng.random() < 0.5:
            victim = rng.choice(awake)
            victim.pause()
            self.pauses += 1
            self._asleep.append((time.monotonic() + rng.uniform(0.1, LONGEST_PAUSE_S), victim))
        else:
            cluster.kill(rng.choice(cluster.members))
            self.kills += 1
            cluster.join()
        return rng.uniform(LEAST_S, MOST_S)

    def rouse(self, *, all_of_them: bool = False) -> None:
        """Wake those whose pause is over."""
        now = time.monotonic()
        for until, member in list(self._asleep):
            if member not in self._cluster.members:
                self._asleep.remove((until, member))
            elif all_of_them or now >= until:
                member.wake()
                self._asleep.remove((until, member))


def run(url: str, seed: int, seconds: float) -> Report:
    """One storm over one store, and what it left."""
    began = time.monotonic()
    with Cluster(url) as cluster:
        for _ in range(MEMBERS):
            cluster.join()
        cluster.members[0].await_ready()
        storm = _Storm(cluster, Random(f"detent chaos {seed}"))
        _rage(cluster, storm, began + seconds)
        storm.rouse(all_of_them=True)
        stuck, wrong = 0, ""
        try:
            cluster.await_ends()
        except Wrong as late:
            stuck, wrong = len(cluster.open_instances()), str(late)
        if not stuck:
            wrong = _audited(cluster)
        outside = cluster.outside()
        return Report(
            seed=seed,
            seconds=time.monotonic() - began,
            kills=storm.kills,
            pauses=storm.pauses,
            instances=cluster.started,
            calls=_count(outside, "call"),
            once_calls=sum(d.what == "call" and d.doubt == "once" for d in outside.deeds),
            asked=_count(outside, "asked"),
            late=len(late_keys(outside)),
            stuck=stuck,
            otherwise=0 if stuck else _otherwise(cluster, outside),
            wrong=wrong,
        )


def _rage(cluster: Cluster, storm: _Storm, until: float) -> None:
    next_strike = time.monotonic() + MOST_S
    while time.monotonic() < until:
        storm.rouse()
        if time.monotonic() >= next_strike:
            next_strike = time.monotonic() + storm.strike()
        if len(cluster.open_instances()) < OPEN_MOST:
            cluster.start(AT_ONCE)
        cluster.decide(wait=False)
        time.sleep(0.05)


def late_keys(outside: Outside) -> set[str]:
    """Effects that took place by a call from before somebody asked whether they had."""
    begun: dict[str, int] = {}  # calls without an end, since somebody asked
    older: dict[str, int] = {}  # and before
    late: set[str] = set()
    for deed in outside.deeds:
        key = deed.key.split(":")[1] if deed.what == "asked" else deed.key
        match deed.what:
            case "begun":
                begun[key] = begun.get(key, 0) + 1
            case "query" | "asked":
                older[key] = older.get(key, 0) + begun.pop(key, 0)
            case "applied" | "refused" if begun.get(key):
                begun[key] -= 1
            case "applied" | "refused" if older.get(key):
                late.add(key)
    return late


def _audited(cluster: Cluster) -> str:
    outside = cluster.outside()
    late = late_keys(outside)
    try:
        known = Outside(deed for deed in outside.deeds if deed.key not in late)
        ending = audit(cluster.store, known)
    except Wrong as wrong:
        return "\n".join([str(wrong), *_history(cluster, outside, str(wrong))])
    doubled = [place for place, times in ending.applied.items() if times != 1]
    if doubled:
        return f"doubled: {doubled[0]} and {len(doubled) - 1} more"
    ids = [derived_id("default", "instance", key_of(n)) for n in range(cluster.started)]
    lost = [id for id in ids if id not in ending.instances]
    return f"lost: {len(lost)} instances, the first is {lost[0]}" if lost else ""


def _history(cluster: Cluster, outside: Outside, said: str) -> list[str]:
    """What the world and the journal have about the effect that an error names."""
    deeds = [deed for deed in outside.deeds if deed.what == "call" and deed.key in said]
    key = deeds[0].key if deeds else "-"
    lines = [f"  world: {d.what} {d.place} {d.handler}" for d in outside.deeds if key in d.key]
    instance = deeds[0].place.partition(" ")[0] if deeds else ""
    row = cluster.store.instance(instance) if instance else None
    for journal in cluster.store.journal(row.n, 0, 1_000) if row is not None else ():
        body = (journal.body or b"").decode(errors="replace")
        if key in body:
            lines.append(f"  journal {journal.seq} turn {journal.turn} at {journal.tick}: {body}")
    return lines


def _otherwise(cluster: Cluster, outside: Outside) -> int:
    """Instances that failed without a reason; over so many crashes an engine gives an effect up."""
    calls: dict[str, int] = {}
    for deed in outside.deeds:
        if deed.what == "call":
            place = deed.place.partition(" ")[0]
            calls[place] = max(calls.get(place, 0), outside.count("call", deed.key))
    found = 0
    for n in range(cluster.started):
        id = derived_id("default", "instance", key_of(n))
        row = cluster.store.instance(id)
        tired = calls.get(id, 0) > CRASHES_PER_EFFECT
        found += (row is None or row.state != expected_state(n)) and not tired
    return found


def _count(outside: Outside, what: str) -> int:
    return sum(deed.what == what for deed in outside.deeds)


def main(argv: list[str] | None = None) -> int:
    """Run storms, report each, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m detent.testing.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (1)")
    parser.add_argument("--seed", type=int, default=1, help="which storm (1)")
    told = parser.parse_args(argv)
    with PostgresServer(durable=True) as server:
        report = run(server.url(f"chaos_{told.seed}"), told.seed, told.minutes * 60)
    print("\n".join(report.lines()), flush=True)
    if report.failed:
        again = f"--minutes {told.minutes:g} --seed {told.seed}"
        print(f"repeat it with: python -m detent.testing.chaos {again}", flush=True)
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main())

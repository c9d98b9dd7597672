"""Metrics (contract §28) in the text format of Prometheus, made when somebody asks for them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from detent.model.figures import times_of
from detent.web.api.call import Call
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from detent.model.figures import Times
    from detent.service.desk import Statistics
    from detent.web.api.meters import Meters

table = Table("metrics")

MEDIA = "text/plain; version=0.0.4; charset=utf-8"

# name -> (what it counts, the counts it sums); a name with a kind before it is of an own instance
COUNTERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "instances_claimed": ("Instances that a turn moved, once for each turn", ("instance.turns",)),
    "instances_started": ("Instances that moved for the first time", ("run.started",)),
    "instances_completed": ("Instances that completed", ("run.completed",)),
    "instances_failed": ("Instances that failed", ("run.failed",)),
    "instances_cancelled": ("Instances that were cancelled", ("run.cancelled",)),
    "instances_quarantined": ("Instances set apart after a fault", ("instance.quarantined",)),
    "steps_executed": ("Steps that were executed", ("step.executed",)),
    "steps_failed": ("Steps that failed for good", ("error.final",)),
    "steps_retried": ("Steps that are tried again", ("error.retried",)),
    "effects_planned": ("Calls of handlers that were decided", ("effect.planned",)),
    "effects_doubted": ("Calls of which nobody knew whether they happened", ("effect.doubted",)),
    "signals_delivered": ("Signals that instances took", ("event.received",)),
    "events_received": ("Events that producers told", ("events:event.received",)),
    "rate_limits_exceeded": ("Steps that had to wait at a limit or pool", ("wait.gate",)),
    "recovery_stale_instances": (
        "Instances whose calls were found open after a restart",
        ("recovery.instances",),
    ),
    "webhooks_sent": ("Deliveries that arrived", ("webhook:run.completed",)),
    "webhooks_failed": (
        "Attempts at a delivery that failed",
        ("webhook:error.occurred", "webhook:error.final"),
    ),
    "webhooks_parked": ("Deliveries that were given up", ("webhook:run.failed",)),
    "tasks_pushed": (
        "Tasks that the receivers of pushed queues took",
        ("push.taken", "push.done", "push.broken"),
    ),
    "tasks_push_failed": ("Pushes of a task that nobody got", ("push.again",)),
    "tasks_push_unsure": ("Pushes of a task whose answer was lost", ("push.unsure",)),
    "cron_triggered": ("Fires of schedules that started an instance", ("cron:cron.fired",)),
    "cron_skipped": ("Fires of schedules that were skipped", ("cron:cron.skipped",)),
    "sla_breached": ("Deadlines and run times that were exceeded", ("sla.breached",)),
}


@table.route(
    "GET", "/metrics", tenantless=True, root_only=True, gives={200: str}, media="text/plain"
)
async def show(call: Call) -> Response:
    """Counters and levels of this server, for Prometheus."""
    found = await call.desk.statistics()
    shown = _Exposition(found, call.meters, len(call.streams))
    return Response(generate_latest(shown), 200, {"content-type": MEDIA})


class _Exposition:
    """What `generate_latest` reads in place of a registry: nothing is kept twice."""

    def __init__(self, found: Statistics, meters: Meters, streams: int) -> None:
        self._found = found
        self._meters = meters
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        """Every family with its samples."""
        counts = self._found.counts
        for name, (told, sources) in COUNTERS.items():
            value = sum(counts.get(source, 0) for source in sources)
            yield CounterMetricFamily(f"detent_{name}", told, value=value)
        yield from _durations(self._found, counts)
        yield from self._levels()
        yield from _answers(self._meters)
        yield from ProcessCollector(registry=None).collect()

    def _levels(self) -> Iterator[Metric]:
        found = self._found
        levels = {
            "queue_depth": ("Instances and inputs that wait for the next turn", found.queued),
            "active_tasks": ("Calls of handlers that are under way", found.under_way),
            "waiting_tasks": ("Calls that wait for room", found.waiting),
            "stuck_tasks": ("Functions that outlived their timeout", found.stuck),
            "parked_tasks": ("Calls whose handler nobody has registered", found.parked),
            "streams": ("Open streams", self._streams),
        }
        for name, (told, value) in levels.items():
            if value is not None:
                yield GaugeMetricFamily(f"detent_{name}", told, value=value)


def _durations(found: Statistics, counts: Mapping[str, int]) -> Iterator[Metric]:
    kinds = {
        "tick_duration": ("How long a turn took", times_of(counts, "turn")),
        "step_duration": ("How long a call of a handler took", found.calls),
        "instance_processing": (
            "From the first move of an instance to its end",
            times_of(counts, "life"),
        ),
    }
    for name, (told, times) in kinds.items():
        family = HistogramMetricFamily(f"detent_{name}_seconds", told)
        _add(family, [], times)
        yield family


def _answers(meters: Meters) -> Iterator[Metric]:
    names = ["method", "route", "status"]
    answers = sorted(meters.answers.items())
    requests = CounterMetricFamily("detent_http_requests", "Requests answered", labels=names)
    seconds = HistogramMetricFamily(
        "detent_http_request_seconds", "How long an answer took", labels=names
    )
    for labels, times in answers:
        requests.add_metric(labels, sum(times.counts))
        _add(seconds, labels, times)
    yield requests
    yield seconds


def _add(family: Any, labels: Any, times: Times) -> None:
    edges = [*(f"{edge / 1_000_000:g}" for edge in times.edges), "+Inf"]
    counts = list(times.counts)
    buckets = list(zip(edges, accumulate(counts), strict=True))
    family.add_metric(labels, buckets=buckets, sum_value=times.total_us / 1_000_000)

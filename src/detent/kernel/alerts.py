"""Service levels: a breach is told once, in the journal, and changes nothing else."""

from __future__ import annotations

from detent.kernel.places import frontier
from detent.kernel.run import Run
from detent.model.snapshot import Frame

RUN = "max_runtime"
STEP = "max_step_runtime"


def arm(run: Run, frame: Frame) -> None:
    """Set the tick at which a step will have taken too long; `set_moving` does so for the run."""
    sla = run.program.sla
    if sla is not None and sla.max_step_runtime is not None and STEP not in run.snapshot.alerted:
        frame.alert = run.after(sla.max_step_runtime)


def breached(run: Run, frame: Frame) -> None:
    """The tick has come: tell it, and no other of its kind."""
    snapshot, sla = run.snapshot, run.program.sla
    root = snapshot.root
    open_nodes = list(frontier(snapshot, run.program))
    if frame is root:
        kind, path, since = RUN, "", snapshot.started or 0
        frame.alert = None
    else:
        kind, since = STEP, frame.since
        path = next((path for path, each, _ in open_nodes if each is frame), "")
        for _, each, _ in open_nodes:
            each.alert = None
    snapshot.alerted.append(kind)
    elapsed = (run.tick - since) * run.facts.resolution_ms
    most = None if sla is None else getattr(sla, kind)
    run.note("sla.breached", path, {"kind": kind, "limit_ms": most, "elapsed_ms": elapsed})

"""Short makers of blocks, so that a test shows the shape of its definition and nothing else."""

from __future__ import annotations


def call(id="a", handler=None, **more):
    """A step whose handler the test answers; the handler has the step's own name unless told."""
    return {"type": "step", "id": id, "handler": handler or id, **more}


def noop(id="n", **more):
    return {"type": "step", "id": id, "handler": "noop", **more}


def put(id, params, **more):
    """A step whose output is its rendered params."""
    return {"type": "step", "id": id, "handler": "transform", "params": params, **more}


def fails(id="f", **more):
    params = {name: more.pop(name) for name in ("message", "retryable", "details") if name in more}
    return {"type": "step", "id": id, "handler": "fail", "params": params, **more}


def sleep(id="s", ms=1000, **more):
    return {"type": "step", "id": id, "handler": "sleep", "params": {"duration_ms": ms}, **more}


def human(id="h", handler="noop", **options):
    more = {name: options.pop(name) for name in ("retry", "output_schema") if name in options}
    return {"type": "step", "id": id, "handler": handler, "wait_for_input": options, **more}


def parallel(*branches, id="p"):
    return {"type": "parallel", "id": id, "branches": [list(branch) for branch in branches]}


def race(*branches, id="r", **more):
    return {"type": "race", "id": id, "branches": [list(branch) for branch in branches], **more}


def loop(*body, id="l", condition="true", **more):
    return {"type": "loop", "id": id, "condition": condition, "body": list(body), **more}


def for_each(*body, id="fe", collection="items", **more):
    return {"type": "for_each", "id": id, "collection": collection, "body": list(body), **more}


def router(*routes, id="ro", **more):
    listed = [{"condition": condition, "blocks": blocks} for condition, blocks in routes]
    return {"type": "router", "id": id, "routes": listed, **more}


def attempt(tried, caught=(), finally_=None, id="t"):
    block = {
        "type": "try_catch",
        "id": id,
        "try_block": list(tried),
        "catch_block": list(caught),
    }
    return block if finally_ is None else {**block, "finally_block": list(finally_)}


def split(*variants, id="ab"):
    listed = [{"name": n, "weight": w, "blocks": list(blocks)} for n, w, blocks in variants]
    return {"type": "a_b_split", "id": id, "variants": listed}


def scope(*blocks, id="sc"):
    return {"type": "cancellation_scope", "id": id, "blocks": list(blocks)}


def saga(*steps, id="sg"):
    """Each step is (action, compensation or None); its id is that of the action with a mark."""
    listed = [
        {"id": f"{action['id']}!", "action": action}
        | ({"compensation": undo} if undo is not None else {})
        for action, undo in steps
    ]
    return {"type": "saga", "id": id, "steps": listed}


def sub(name="child", id="sub", **more):
    return {"type": "sub_sequence", "id": id, "sequence_name": name, **more}


def wait(id="w", **more):
    return {"type": "wait", "id": id, **more}


def graph(nodes, *transitions, id="g", start=None):
    """A transition is (from, to) or (from, to, when)."""
    listed = [dict(zip(("from", "to", "when"), each, strict=False)) for each in transitions]
    start = start or next(iter(nodes))
    return {"type": "graph", "id": id, "start": start, "nodes": nodes, "transitions": listed}


def goto(to, id=None):
    return {"type": "goto", "to": to} | ({"id": id} if id else {})


def retry(most, first=1000, last=60_000, **more):
    return {"max_attempts": most, "initial_backoff": first, "max_backoff": last, **more}

"""Breakers are found without knowing whose they are, in order, page by page."""

from __future__ import annotations

from detent.ports.store import GateRow


def put(world, *rows):
    world.commit(gate_rows=[GateRow(*row) for row in rows])


def found(store, *wanted):
    return [(row.tenant, row.key, row.body) for row in store.breaker_rows(*wanted)]


def test_breakers_are_listed_by_tenant_and_handler_and_nothing_else_is(world, store):
    put(
        world,
        ("zeta", "breaker", "pay", 0, b"1"),
        ("acme", "breaker", "send", 0, b"2"),
        ("acme", "breaker", "pay", 0, b"3"),
        ("acme", "use", "pay", 7, b"4"),
        ("acme", "shut", "pay", 0, b"5"),
    )
    everyone = [("acme", "pay", b"3"), ("acme", "send", b"2"), ("zeta", "pay", b"1")]
    assert found(store, None, 10) == everyone
    assert found(store, "acme", 10) == everyone[:2]
    assert found(store, "nobody", 10) == []


def test_a_page_goes_on_after_the_last_row_of_the_one_before(world, store):
    put(world, *((f"t{n % 3}", "breaker", f"h{n:02}", 0, b"%d" % n) for n in range(20)))
    seen, after = [], ("", "")
    while page := store.breaker_rows(None, 6, after):
        seen += page
        after = (page[-1].tenant, page[-1].key)
    assert seen == store.breaker_rows(None, 100)
    assert len(seen) == 20
    assert store.breaker_rows("t1", 100, ("t1", "h10")) == store.breaker_rows("t1", 100)[4:]


def test_a_breaker_without_a_body_is_gone(world, store):
    put(world, ("acme", "breaker", "pay", 0, b"1"))
    put(world, ("acme", "breaker", "pay", 0, None))
    assert store.breaker_rows(None, 10) == []

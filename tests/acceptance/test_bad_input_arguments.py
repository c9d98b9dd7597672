"""Wrong names, options and settings: each is refused with a code, and nothing is written."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent import sequence, step, wait
from detent.model import limits
from tests.acceptance.stage import DAY_MS, digest, dump, refused, state, virtual

DOOR = sequence("door", wait("w", signal="go"))
SURROGATE = "\ud800"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


@pytest.fixture
def waiting(engine):
    """An instance that stands at its wait."""
    return engine.start(DOOR)


NO_TEXT = {"a number": 5, "null": None, "empty": "", "a list": ["a"], "bytes": b"x"}
ODD_TEXT = {"a NUL": "\x00", "a surrogate": SURROGATE}


@pytest.mark.parametrize("label", ["tenant", "namespace"])
@pytest.mark.parametrize(
    "value", [*NO_TEXT.values(), *ODD_TEXT.values(), "x" * (limits.NAME_CHARS + 1)]
)
def test_a_tenant_or_namespace_that_is_no_short_text_is_refused(engine, path, label, value):
    before = digest(path)
    for call in (engine.start, engine.deploy):
        with refused("request.invalid"):
            call(DOOR, **{label: value})
    with refused("request.invalid"):
        engine.start_many(DOOR, [1], **{label: value})
    assert digest(path) == before


@pytest.mark.parametrize(
    "key", [5, "", ["a"], b"x", *ODD_TEXT.values(), "x" * (limits.KEY_CHARS + 1)]
)
def test_a_key_that_is_no_short_text_is_refused(engine, path, key):
    before = digest(path)
    with refused("request.invalid"):
        engine.start(DOOR, key=key)
    assert digest(path) == before


def test_labels_and_keys_as_long_as_the_limit_are_taken(engine):
    label = "\u00e9" * limits.NAME_CHARS
    instance = engine.start(DOOR, tenant=label, namespace=label, key="\u00e9" * limits.KEY_CHARS)
    assert engine.inspect.show(instance, tenant=label).summary.namespace == label


WRONG_OPTIONS = [
    {"priority": "low"},
    {"priority": 1},
    {"priority": None},
    {"priority": ["Low"]},
    {"timezone": 5},
    {"timezone": None},
    {"timezone": ["UTC"]},
    {"at": 5},
    {"at": "tomorrow"},
    {"at": dt.date(2026, 1, 1)},
    {"at": dt.datetime(2026, 1, 1)},  # noqa: DTZ001 - the missing zone is the fault
    {"at": dt.timedelta.max},
    {"at": dt.datetime.max.replace(tzinfo=dt.UTC)},
    {"dry_run": "yes"},
    {"dry_run": None},
    {"auto_approve": 1},
]


@pytest.mark.parametrize("options", WRONG_OPTIONS, ids=str)
def test_an_option_of_a_start_that_makes_no_sense_is_refused(engine, path, options):
    before = digest(path)
    with refused("request.invalid") as refusal:
        engine.start(DOOR, **options)
    assert next(iter(options)) in refusal.value.message
    assert digest(path) == before


@pytest.mark.req("SEQ-TIM-2")
@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/localtime", "europe/paris", "EU"])
def test_an_unknown_time_zone_is_refused_and_never_taken_for_utc(engine, path, name):
    before = digest(path)
    with refused("calendar.zone") as refusal:
        engine.start(DOOR, timezone=name)
    assert "timezone" in refusal.value.message
    assert digest(path) == before
    assert engine.inspect.show(engine.start(DOOR, timezone="Europe/Paris")).timezone


WRONG_DEFINITIONS = {
    None: "request.invalid",
    5: "request.invalid",
    "": "definition.unknown",
    "unknown": "definition.unknown",
    "door@2": "definition.unknown",
    "door@x": "request.invalid",
    "door@-1": "request.invalid",
    "door@": "request.invalid",
    "door@\u00b2": "request.invalid",
    "door@" + "9" * 30: "definition.unknown",
    "a\x00": "definition.unknown",
    SURROGATE: "definition.unknown",
}


@pytest.mark.parametrize(("named", "code"), WRONG_DEFINITIONS.items())
def test_what_names_no_stored_definition_is_refused(engine, path, named, code):
    engine.deploy(DOOR)
    before = digest(path)
    with refused(code):
        engine.start(named)
    with refused(code):
        engine.start_many(named, [1, 2])
    assert digest(path) == before
    assert state(engine, engine.start("door@1")) == "waiting"


@pytest.mark.parametrize("definition", [5, None, {"name": "x"}, "door"])
def test_only_a_definition_can_be_deployed(engine, definition):
    with refused("request.invalid"):
        engine.deploy(definition)


@pytest.mark.parametrize("given", [5, None, "text", {"a": 1}])
def test_a_batch_is_a_list_of_payloads(engine, path, given):
    engine.deploy(DOOR)
    before = digest(path)
    with refused("request.invalid"):
        engine.start_many(DOOR, given)
    assert digest(path) == before


def test_a_batch_may_have_as_many_items_as_the_limit_and_not_more(engine, path):
    engine.deploy(DOOR)
    before = digest(path)
    with refused("request.invalid"):
        engine.start_many(DOOR, [None] * (limits.BATCH_STARTS + 1))
    assert digest(path) == before
    assert engine.start_many(DOOR, []) == []


NO_INSTANCE = [None, 5, ["a"], "unknown", "", "a\x00", SURROGATE, "x" * 10_000]


@pytest.mark.parametrize("instance", NO_INSTANCE, ids=lambda value: repr(value)[:12])
def test_every_verb_refuses_an_instance_that_does_not_exist(engine, path, instance):
    engine.deploy(DOOR)
    before = digest(path)
    looks = engine.inspect
    for call in (
        lambda: engine.signal(instance, "go"),
        lambda: engine.pause(instance),
        lambda: engine.resume(instance),
        lambda: engine.cancel(instance),
        lambda: engine.retry(instance),
        lambda: engine.resolve(instance, "key", "skip"),
        lambda: engine.migrate(instance, DOOR),
        lambda: engine.fork(instance, seq=1),
        lambda: engine.wait_for(instance),
        lambda: engine.explain(instance),
        lambda: engine.replay(instance),
        lambda: looks.show(instance),
        lambda: looks.tree(instance),
        lambda: looks.outputs(instance),
        lambda: looks.timeline(instance),
        lambda: looks.audit(instance),
        lambda: looks.effects(instance),
        lambda: looks.debug(instance),
    ):
        with refused("instance.not_found"):
            call()
    assert digest(path) == before


@pytest.mark.parametrize(
    "name", [*NO_TEXT.values(), *ODD_TEXT.values(), "x" * 256, {"custom": ""}, {"other": "x"}]
)
def test_a_signal_needs_a_name(engine, path, waiting, name):
    before = digest(path)
    with refused("request.invalid"):
        engine.signal(waiting, name)
    assert digest(path) == before


@pytest.mark.parametrize("id", [5, ["a"], b"x", *ODD_TEXT.values(), "x" * (limits.KEY_CHARS + 1)])
def test_a_caller_s_id_that_is_no_short_text_is_refused(engine, path, waiting, id):
    before = digest(path)
    with refused("request.invalid"):
        engine.signal(waiting, "go", id=id)
    with refused("request.invalid"):
        engine.command(waiting, "pause", id=id)
    assert digest(path) == before
    assert state(engine, waiting) == "waiting"


@pytest.mark.parametrize("verb", ["stop", "", None, 5])
def test_an_unknown_command_is_refused_and_the_instance_goes_on(engine, path, waiting, verb):
    before = digest(path)
    with refused("request.invalid"):
        engine.command(waiting, verb)
    assert digest(path) == before
    assert state(engine, waiting) == "waiting"


@pytest.mark.parametrize("payload", [None, 5, "text", [1]])
def test_update_context_needs_an_object(engine, path, waiting, payload):
    before = digest(path)
    with refused("payload.invalid"):
        engine.signal(waiting, "update_context", payload)
    assert digest(path) == before


@pytest.mark.parametrize("to", ["unknown", 5, None, ""])
def test_a_move_to_a_definition_nobody_has_is_refused_and_the_instance_goes_on(engine, waiting, to):
    with refused("definition.unknown"):
        engine.command(waiting, "migrate", {"to": to})
    assert state(engine, waiting) == "waiting"
    engine.signal(waiting, "go")
    assert engine.wait_for(waiting) == "completed"


@pytest.mark.parametrize("wanted", ["ended", 5, ["completed", "done"], []])
def test_waiting_for_a_state_that_does_not_exist_is_refused(engine, waiting, wanted):
    with refused("request.invalid"):
        engine.wait_for(waiting, wanted)


@pytest.mark.parametrize(
    ("by", "to"),
    [
        (None, None),
        (1, 1),
        ("1d", None),
        (1.5, None),
        (-1, None),
        (-DAY_MS, None),
        (dt.timedelta(-1), None),
        (dt.timedelta.max, None),
        (2**70, None),
        (True, None),
        (None, "x"),
        (None, 1.5),
        (None, -1),
        (None, 2**70),
        (None, dt.datetime(2027, 1, 1)),  # noqa: DTZ001 - the missing zone is the fault
        (None, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    ],
)
def test_time_moves_only_forwards_by_whole_numbers_and_not_for_ever(engine, by, to):
    now = engine.now()
    with refused("request.invalid"):
        engine.advance(by, to=to)
    assert engine.now() == now


WRONG_SETTINGS = [
    {"writer": "thread pool"},
    {"clock": "sundial"},
    {"resolution_ms": 0},
    {"resolution_ms": "100"},
    {"resolution_ms": 1.5},
    {"resolution_ms": limits.RESOLUTION_MS + 1},
    {"partitions": 0},
    {"partitions": "16"},
    {"partitions": limits.PARTITIONS_MOST + 1},
    {"epoch_ms": "now"},
    {"epoch_ms": -1},
    {"max_in_flight": 0},
    {"max_in_flight": "many"},
    {"threads": 0},
    {"threads": "many"},
    {"seed": 5},
    {"turns": 5},
    {"switch_interval_ms": "x"},
    {"policies": 5},
    {"policies": [5]},
    {"policies": [{"kind": "unknown"}]},
    {"policies": [{"kind": "effect_budget", "params": {"max_effects": "many"}}]},
    {"clock": "virtual", "writer": "process"},
]


@pytest.mark.parametrize("settings", WRONG_SETTINGS, ids=str)
def test_a_setting_no_engine_can_work_with_is_refused_before_a_store_is_made(path, settings):
    with refused("request.invalid") as refusal:
        detent.Engine(path, **settings)
    assert list(settings)[-1].removesuffix("policies") in refusal.value.message
    assert not path.exists()


@pytest.mark.parametrize("place", [5, None, b"x", "a\x00b", ""])
def test_a_path_must_be_a_path(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    with refused("request.invalid"):
        detent.Engine(place)
    assert list(tmp_path.iterdir()) == []


def test_nothing_starts_under_a_policy_that_nobody_can_answer(path):
    with virtual(path, policies=[{"handler": "guard"}]) as engine:
        before = dump(path)
        with refused("handler.unknown"):
            engine.start(DOOR)
        assert dump(path) == before

        @detent.policy
        def guard():
            return detent.allow()

        engine.register(guard)
        assert state(engine, engine.start(DOOR)) == "waiting"


def test_a_refused_engine_lets_the_store_go(path):
    with virtual(path) as first:
        kept = first.start(DOOR)
    before = dump(path)
    with refused("store.settings"):
        virtual(path, resolution_ms=1)
    with refused("handler.signature"):
        virtual(path, handlers=[print])
    assert dump(path) == before
    with virtual(path) as again:
        assert state(again, kept) == "waiting"


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("set_state", {"state": 7}),
        ("set_state", {"state": "scheduled", "next_fire_at": "soon"}),
        ("set_state", {"state": "scheduled", "next_fire_at": -1}),
        ("set_state", {"state": "scheduled", "next_fire_at": 2**62}),
        ("reschedule", {"offset_ms": "1h"}),
        ("resume_from", {"block": "a", "signals": ["go"]}),
        ("resume_from", {"block": "a", "data": [1]}),
    ],
)
def test_arguments_of_a_command_that_somebody_made_up_are_refused(engine, verb, args):
    made = engine.start(sequence("s", step("a", "fail"), wait("w", signal="x")))
    engine.run_until_idle()
    before = engine.inspect.show(made)
    with refused("request.invalid"):
        engine.command(made, verb, args)
    after = engine.inspect.show(made)
    assert (after.summary.state, after.data) == (before.summary.state, before.data)

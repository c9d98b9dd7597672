"""Whatever is changed in a store, `verify` finds it; and it finds nothing where nothing was."""

from __future__ import annotations

import shutil

import apsw
import msgspec
import pytest

from detent.definition import normalize
from detent.kernel.anchor import read_anchor
from detent.kernel.chain import digest_of
from detent.model import limits
from detent.model.errors import RequestError
from detent.service.proving import make_anchor, verify_store
from detent.store.sqlite import open_store
from detent.testing.tampering import tamper
from tests.unit.service.keeper import Keeper

BLOCKS = [
    {"type": "step", "id": "a", "handler": "work"},
    {"type": "wait", "id": "w", "duration": 1_000},
    {"type": "step", "id": "b", "handler": "work"},
]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A closed store file: eight instances, six of them completed, one with a large value."""
    path = tmp_path_factory.mktemp("stores") / "story.db"
    keeper = Keeper(path)
    made = keeper.define(normalize({"name": "story", "version": 1, "blocks": BLOCKS}))
    large = {"text": "x" * (limits.BLOB_BYTES + 1)}
    ids = [keeper.start(made, f"i{i}", large if i == 3 else {}, tick=i) for i in range(8)]
    keeper.finish(*ids[:6])
    keeper.store.checkpoint()
    keeper.close()
    return path


@pytest.fixture
def store_file(story, tmp_path):
    """A copy that a test may harm."""
    return shutil.copy(story, tmp_path / "copy.db")


def harmed(path, *statements):
    connection = apsw.Connection(str(path))
    for sql in statements:
        connection.execute(sql)
    connection.close()
    return verified(path)


def verified(path, anchor=None):
    store = open_store(path, create=None, read_only=True)
    try:
        return verify_store(store, anchor)
    finally:
        store.close()


def anchored(path):
    store = open_store(path, create=None, read_only=True)
    try:
        return make_anchor(store)
    finally:
        store.close()


@pytest.mark.req("CORE-AUD-3")
def test_an_intact_store_is_valid_and_says_how_much_was_looked_at(store_file):
    told = verified(store_file)
    assert told.valid
    assert told.broken is None
    assert (told.rows, told.instances, told.seals) == (26, 8, 5)
    assert (told.first_tick, told.erased, told.later) == (0, 0, 0)
    assert told.last_tick >= 17


@pytest.mark.req("CORE-AUD-3", "CORE-AUD-1")
@pytest.mark.parametrize("part", range(10))
def test_any_random_harm_is_found(story, tmp_path, part):
    path = tmp_path / "harmed.db"
    for seed in range(part * 40, part * 40 + 40):
        shutil.copy(story, path)
        what = tamper(path, seed)
        told = verified(path)
        assert not told.valid, what
        assert told.broken.where, what


@pytest.mark.req("CORE-AUD-3")
@pytest.mark.parametrize(
    ("sql", "where"),
    [
        (
            "UPDATE journal SET body = CAST(replace(body, 'run.', 'ran.') AS BLOB) WHERE seq = 1",
            "digest",
        ),
        ("UPDATE journal SET tick = tick + 1 WHERE seq = 2", "head"),
        ("UPDATE journal SET turn = turn + 1 WHERE pos = 3", ""),
        ("UPDATE journal SET head = zeroblob(32) WHERE seq = 1", "head"),
        ("UPDATE journal SET snapshot_digest = zeroblob(32) WHERE seq = 1", "head"),
        ("UPDATE journal SET body = NULL, digest = zeroblob(32) WHERE seq = 1", "head"),
        ("UPDATE instance SET salt = zeroblob(16)", "digest"),
        ("UPDATE instance SET state = 'paused' WHERE state = 'completed'", "state"),
        ("UPDATE instance SET tenant = 'other'", "tenant"),
        ("UPDATE instance SET due = due + 1 WHERE due IS NOT NULL", "due"),
        ("UPDATE instance SET due = NULL", "due"),
        (
            "UPDATE snapshot SET body = CAST(replace(body, 'completed', 'cancelled') AS BLOB)",
            "snapshot",
        ),
        ("DELETE FROM snapshot WHERE n = 1", "snapshot version"),
        ("DELETE FROM instance WHERE n = 1", "instance row"),
        ("DELETE FROM turn WHERE n = 1", "turn row"),
        ("UPDATE turn SET tick = tick + 1 WHERE n = 2", "root"),
        ("UPDATE seal SET tick = tick + 1 WHERE n = 2", "digest"),
        ("DELETE FROM seal WHERE n = 2", "seal"),
        ("UPDATE partition SET root = zeroblob(32) WHERE turn > 0", "root"),
        ("UPDATE partition SET turn = turn + 1 WHERE p = 0", "turn row"),
        ("UPDATE definition SET body = CAST(replace(body, 'work', 'word') AS BLOB)", "hash"),
        ("DELETE FROM definition", "hash"),
        ("UPDATE blob SET body = zeroblob(10)", "blob"),
        ("DELETE FROM blob", "blob"),
    ],
)
def test_the_first_thing_that_does_not_hold_is_named(store_file, sql, where):
    told = harmed(store_file, sql)
    assert not told.valid
    if where:
        assert told.broken.what == where
    assert told.broken.expected != told.broken.found


@pytest.mark.req("CORE-AUD-1")
def test_a_whole_instance_removed_is_found(store_file):
    told = harmed(
        store_file,
        "DELETE FROM journal WHERE inst = 2",
        "DELETE FROM snapshot WHERE n = 2",
        "DELETE FROM instance WHERE n = 2",
    )
    assert told.broken.what == "journal row"
    assert told.broken.found == "none" or "head" in told.broken.where


def test_a_row_put_behind_the_last_turn_is_found(store_file):
    """Nothing was committed meanwhile, so there can be no turn behind the last one."""
    told = harmed(
        store_file,
        "INSERT INTO journal(inst, seq, turn, tick, snapshot_digest, digest, body, head) "
        "SELECT inst, seq + 1, 99, tick, snapshot_digest, digest, body, head FROM journal "
        "WHERE pos = 26",
    )
    assert told.broken.what == "turn"
    assert told.later == 1


def test_bytes_moved_from_the_salt_into_the_bodies_are_found(store_file):
    """Salt and body are hashed one after the other, so every digest still fits."""
    connection = apsw.Connection(str(store_file))
    [(salt,)] = connection.execute("SELECT salt FROM instance WHERE n = 1").fetchall()
    for pos, body, digest in connection.execute(
        "SELECT pos, body, digest FROM journal WHERE inst = 1"
    ).fetchall():
        assert digest_of(b"", salt + body) == digest
        connection.execute("UPDATE journal SET body = ? WHERE pos = ?", (salt + body, pos))
    connection.execute("UPDATE instance SET salt = x'' WHERE n = 1")
    connection.close()
    assert verified(store_file).broken.what == "digest"


def test_erased_bodies_are_proved_by_their_digests_alone(store_file):
    erase = (
        "UPDATE journal SET body = NULL WHERE inst = 1",
        "UPDATE instance SET salt = x'' WHERE n = 1",
        "DELETE FROM snapshot WHERE n = 1",
    )
    told = harmed(store_file, *erase)
    assert told.valid
    assert told.erased == 4
    told = harmed(store_file, "UPDATE journal SET digest = zeroblob(32) WHERE inst = 1")
    assert told.broken.what == "head"


def test_a_salt_that_is_gone_while_bodies_are_left_is_found(store_file):
    told = harmed(store_file, "UPDATE instance SET salt = x'' WHERE n = 1")
    assert told.broken.what == "digest"


@pytest.mark.req("CORE-AUD-1", "CORE-AUD-3")
def test_a_cut_tail_is_found_against_an_anchor_and_only_then(tmp_path):
    """The store is put back whole to an earlier state: within itself it is intact."""
    keeper = Keeper(tmp_path / "s.db")
    made = keeper.define(normalize({"name": "story", "version": 1, "blocks": BLOCKS}))
    first = keeper.start(made, "one")
    keeper.store.checkpoint()
    shutil.copy(tmp_path / "s.db", tmp_path / "old.db")
    keeper.finish(first)
    anchor = make_anchor(keeper.store)
    keeper.store.checkpoint()
    keeper.close()
    assert verified(tmp_path / "s.db", anchor).valid
    assert verified(tmp_path / "old.db").valid
    told = verified(tmp_path / "old.db", anchor)
    assert told.broken.what == "tail"


def test_an_anchor_holds_while_the_store_grows(tmp_path):
    keeper = Keeper(tmp_path / "s.db")
    made = keeper.define(normalize({"name": "story", "version": 1, "blocks": BLOCKS}))
    empty = make_anchor(keeper.store)
    first = keeper.start(made, "one")
    anchor = make_anchor(keeper.store)
    keeper.finish(first)
    assert verify_store(keeper.store, anchor).valid
    assert verify_store(keeper.store, empty).valid
    keeper.close()


def test_a_seal_cut_from_the_end_is_found_against_an_anchor(store_file):
    anchor = anchored(store_file)
    assert anchor.seal == 5
    harmed(store_file, "DELETE FROM seal WHERE n = 5")
    assert verified(store_file).valid
    assert verified(store_file, anchor).broken.what == "seal"


def test_an_anchor_of_another_store_is_refused(store_file):
    anchor = msgspec.structs.replace(anchored(store_file), store="another")
    assert verified(store_file, anchor).broken.what == "store"


def test_an_anchor_travels_as_json_and_a_changed_one_is_refused(store_file):
    anchor = anchored(store_file)
    text = msgspec.json.encode(anchor)
    assert read_anchor(text) == anchor
    with pytest.raises(RequestError):
        read_anchor(text.replace(b'"tick":', b'"tick":1'))
    with pytest.raises(RequestError):
        read_anchor(b"[]")


def test_what_is_committed_while_verifying_is_left_to_the_next_time(tmp_path):
    """The writer goes on between two pages; that is no finding."""
    keeper = Keeper(tmp_path / "s.db")
    made = keeper.define(normalize({"name": "story", "version": 1, "blocks": BLOCKS}))
    ids = [keeper.start(made, f"i{i}") for i in range(4)]

    class Live:
        """The store, with a turn after each look at the journal."""

        def __getattr__(self, name):
            return getattr(keeper.store, name)

        def journal_scan(self, after, _limit):
            rows = keeper.store.journal_scan(after, 3)
            for id in ids[:1]:
                keeper.finish(id)
                ids.remove(id)
                keeper.start(made, f"late {id}")
            return rows

    told = verify_store(Live())
    assert told.valid, told.broken
    assert told.later > 0
    assert verify_store(keeper.store).later == 0
    assert verify_store(keeper.store).valid
    keeper.close()


def test_negative_numbers_are_a_finding_and_no_crash(store_file):
    assert harmed(store_file, "UPDATE journal SET tick = -5 WHERE pos = 1").broken.what == "tick"
    assert harmed(store_file, "UPDATE turn SET tick = -5 WHERE n = 1").broken.what


def test_the_digest_of_a_body_depends_on_the_salt():
    assert digest_of(bytes(16), b"x") != digest_of(b"\x01" * 16, b"x")

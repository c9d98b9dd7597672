"""A vault's key is changed: every secret is sealed again, in batches, and none is ever lost."""

from __future__ import annotations

import pytest

from detent.model import limits
from detent.ports.records import RecordQuery
from detent.service.credentials import NewCredential, create_credential, decode
from detent.service.fleet import Hand, create
from detent.service.fleet_kinds import TARGETS
from detent.service.handing_out import secret_of
from detent.service.push_targets import PushTarget
from detent.service.requests import Kept, Named, keep_answer, kept_answer
from detent.service.resealing import Resealed, reseal, stale_secrets
from detent.service.triggers import NewTrigger, create_trigger, fire_trigger
from detent.service.vault import Place, Safe, Vault
from detent.testing.faulty import MOMENTS, Crash, Fault, FaultyStore
from tests.unit.service.shelf import KEY, NO_VAULT, NOW, SAFE, a_store, define, refusal

pytestmark = pytest.mark.req("SEQ-HND-5")

NEW, OTHER = bytes(32), bytes(range(1, 33))
BOTH, ALONE = Vault([NEW, KEY]), Safe(Vault([NEW]))
OAUTH = {"kind": "oauth2", "refresh_url": "https://a.example.com/", "refresh_token": "r3fresh"}
ASKED = Named("acme", "request-1")


@pytest.fixture
def store():
    made = a_store()
    yield made
    made.close()


def fill(store, credentials=4):
    """Secrets of every kind, and records that have none."""
    for n in range(credentials):
        new = NewCredential(id=f"c{n}", name="n", value=f"s3cret-{n}", **(OAUTH if n == 0 else {}))
        create_credential(store, SAFE, "acme", new, NOW)
    define(store, "shop")
    for slug, secret in (("signed", "s3cret-hook"), ("open", None)):
        new = NewTrigger(slug=slug, sequence_name="shop", tenant_id="acme", secret=secret)
        create_trigger(store, SAFE, None, new, NOW)
    for queue, secret in (("bulk", "s3cret-push"), ("open", None)):
        body = PushTarget(queue_name=queue, url="https://a.example.com/", secret=secret)
        create(store, TARGETS, "acme", body, f"t-{queue}", Hand(SAFE, NOW))
    keep_answer(store, SAFE, ASKED, Kept(digest="d", status=201, body="s3cret"), NOW)
    keep_answer(store, NO_VAULT, Named("acme", "plain"), Kept(digest="d", status=200), NOW)


def everything(store):
    """Every record of a kind that can hold a secret."""
    kinds = ("credential", "trigger", "request", "push_target")
    return [record for kind in kinds for record in store.records(RecordQuery(kind, limit=1_000))]


def check_opens(store, safe, credentials=4):
    """Every secret is what it was, for who has these keys."""
    for n in range(credentials):
        assert secret_of(store, safe, "acme", f"c{n}", NOW) == f"s3cret-{n}"
    token = decode(store.record("credential", "c0").body).refresh_token
    assert safe.open(token, Place("credential", "acme", "c0", "refresh_token")) == "r3fresh"
    assert fire_trigger(store, safe, "acme", "signed", {}, "s3cret-hook").slug == "signed"
    assert kept_answer(store, safe, ASKED, NOW).body == "s3cret"


def test_everything_is_sealed_with_the_new_key_and_the_old_one_may_go(store):
    fill(store)
    before = everything(store)
    every = Resealed(credentials=4, triggers=1, answers=1, targets=1)
    assert stale_secrets(store, BOTH, NOW) == every
    assert everything(store) == before  # it only counts
    done = reseal(store, BOTH, NOW)
    assert (done, done.total) == (every, 7)
    check_opens(store, ALONE)
    assert kept_answer(store, ALONE, Named("acme", "plain"), NOW).status == 200
    refusal("vault.locked", secret_of, store, SAFE, "acme", "c0", NOW)
    assert reseal(store, BOTH, NOW) == Resealed()


def test_nothing_but_the_seals_is_changed(store):
    fill(store)
    before = {record.id: record for record in everything(store)}
    reseal(store, BOTH, NOW + 10_000)
    for record in everything(store):
        old = before[record.id]
        changed = record.body != old.body
        assert record == old._replace(body=record.body, rev=old.rev + changed)
        if record.kind == "credential":
            plain = decode(old.body)
            assert decode(record.body).name == plain.name


def test_a_wrong_old_key_is_refused_with_the_name_of_the_right_one_and_nothing_is_written(store):
    fill(store)
    odd = NewCredential(id="odd", name="n", value="s3cret")
    create_credential(store, Safe(Vault([NEW])), "acme", odd, NOW)
    before = everything(store)
    right = Vault([KEY]).keys[0]
    for run in (reseal, stale_secrets):
        for keys in ([NEW], [NEW, OTHER]):
            message = refusal("vault.locked", run, store, Vault(keys), NOW)
            assert right in message
            assert "8 secrets" in message
            assert "the value of credential 'c0'" in message
            assert "nothing was changed" in message
            assert "s3cret" not in message
    assert everything(store) == before
    check_opens(store, SAFE)


def test_one_secret_of_an_unknown_key_among_many_keeps_all_as_they_are(store):
    fill(store)
    lost = NewCredential(id="lost", name="n", value="s3cret")
    create_credential(store, Safe(Vault([OTHER])), "acme", lost, NOW)
    before = everything(store)
    message = refusal("vault.locked", reseal, store, BOTH, NOW)
    assert (Vault([OTHER]).keys[0] in message, "'lost'" in message) == (True, True)
    assert everything(store) == before


def test_a_damaged_secret_is_named_and_holds_up_no_other(store):
    fill(store)
    stolen = store.record("credential", "c1").body
    store.replace_record(store.record("credential", "c2")._replace(body=stolen))
    found = Resealed(credentials=3, triggers=1, answers=1, targets=1, damaged=("credential 'c2'",))
    assert stale_secrets(store, BOTH, NOW) == found
    assert reseal(store, BOTH, NOW) == found
    assert store.record("credential", "c2").body == stolen
    assert secret_of(store, ALONE, "acme", "c3", NOW) == "s3cret-3"


def test_an_answer_that_nobody_is_given_any_more_needs_no_key(store):
    keep_answer(store, Safe(Vault([OTHER])), ASKED, Kept(digest="d", status=201), NOW)
    refusal("vault.locked", reseal, store, BOTH, NOW)
    over = NOW + limits.REQUEST_KEPT_MS
    assert reseal(store, BOTH, over) == Resealed()


def test_what_others_change_meanwhile_is_kept_and_sealed_too(store):
    fill(store)
    write, told = store.replace_records, []

    def meddled(records):
        """Somebody enters another value, and somebody removes one, right before the write."""
        if not told:
            told.append(len(records))
            store.delete_record("credential", "c3")
            place = Place("credential", "acme", "c1")
            record = store.record("credential", "c1")
            body = record.body.replace(b'"name":"n"', b'"name":"mine"')
            store.replace_record(record._replace(body=body))
            assert SAFE.open(decode(body).value, place) == "s3cret-1"
        return write(records)

    class Shared:
        replace_records = staticmethod(meddled)

        def __getattr__(self, name):
            return getattr(store, name)

    done = reseal(Shared(), BOTH, NOW)
    assert (told, done.credentials) == ([4], 3)
    assert decode(store.record("credential", "c1").body).name == "mine"
    assert store.record("credential", "c3") is None
    check_opens(store, ALONE, credentials=3)


def test_a_crash_anywhere_leaves_every_secret_open_and_the_next_run_goes_on(monkeypatch):
    """Batches of two: the process dies before, within and after each write there is."""
    monkeypatch.setattr(limits, "RESEAL_BATCH", 2)
    writes = 0
    for moment in MOMENTS:
        write = 1
        while True:
            store = a_store()
            fill(store, credentials=5)
            faulty = FaultyStore(store._connection, Fault(write, moment, statement=write))
            try:
                reseal(faulty, BOTH, NOW)
                store.close()
                break
            except Crash:
                writes += 1
            check_opens(store, Safe(BOTH), credentials=5)
            left = stale_secrets(store, BOTH, NOW)
            assert all(len({*map(vault_key, sealed(record))}) <= 1 for record in everything(store))
            assert reseal(store, BOTH, NOW) == left
            check_opens(store, ALONE, credentials=5)
            store.close()
            write += 1
    assert writes == 3 * 6  # three batches of credentials, one of each other kind


def sealed(record):
    if record.kind != "credential":
        return []
    stored = decode(record.body)
    return [each for each in (stored.value, stored.refresh_token) if each is not None]


def vault_key(secret):
    return Vault.key_of(secret)

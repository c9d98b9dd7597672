"""The audit as a PDF for people."""

from __future__ import annotations

import sys

import pytest

import detent
from detent.bootstrap.report import audit_pdf
from detent.model.errors import RequestError

STORY = detent.sequence("story", detent.step("say", "log", params={"message": '#panic("no") *b*'}))


@pytest.fixture
def engine():
    with detent.Engine(":memory:", clock="virtual", seed="report") as engine:
        yield engine


def made(engine, instance, tenant=None):
    return engine.inspect.look(lambda store: audit_pdf(store, instance, tenant))


@pytest.mark.req("CORE-AUD-4")
def test_the_audit_of_an_instance_is_a_pdf_and_its_data_is_never_markup(engine):
    instance = engine.start(STORY)
    engine.run_until_idle()
    body = made(engine, instance)
    assert body.startswith(b"%PDF-")
    assert b"%%EOF" in body[-64:]


@pytest.mark.req("CORE-AUD-4")
def test_an_instance_of_nobody_or_of_another_tenant_has_no_report(engine):
    instance = engine.start(STORY)
    for asked, tenant in (("nobody", None), (instance, "another")):
        with pytest.raises(RequestError) as refused:
            made(engine, asked, tenant)
        assert refused.value.code == "instance.not_found"


def test_without_typst_the_answer_says_what_to_install(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(RequestError) as refused:
        made(engine, engine.start(STORY))
    assert "detent[pdf]" in refused.value.message

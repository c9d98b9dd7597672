"""Settings of a server: where they come from, and which are refused."""

from __future__ import annotations

import pytest

from detent import RequestError
from detent.bootstrap.server_settings import ServerSettings, load_settings, without_effect


def test_flags_come_before_the_environment_before_the_file_before_defaults(tmp_path):
    file = tmp_path / "d.toml"
    file.write_text('port = 1\nhost = "h"\nenv_label = "file"\n')
    environment = {"DETENT_PORT": "2", "DETENT_ENV_LABEL": "environment", "PATH": "x"}
    held = load_settings({"port": 3, "host": None}, environment, str(file))
    assert (held.port, held.env_label, held.host) == (3, "environment", "h")
    assert held.require_tenant_header is True


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("REQUIRE_TENANT_HEADER", "false", False),
        ("REQUIRE_TENANT_HEADER", "0", False),
        ("ALLOW_INTERNAL_URLS", "1", True),
        ("WEBHOOK_URLS", "https://a, https://b,", ("https://a", "https://b")),
        ("TICK_INTERVAL_MS", "250", 250),
    ],
)
def test_texts_of_the_environment_are_read_as_what_they_mean(name, text, value):
    held = load_settings({}, {f"DETENT_{name}": text})
    assert getattr(held, name.lower()) == value


@pytest.mark.parametrize(
    ("flags", "environment", "said"),
    [
        ({}, {"DETENT_API_KEYS": "x"}, "did you mean DETENT_API_KEY?"),
        ({}, {"DETENT_PORT": "many"}, "DETENT_PORT must be a whole number; got 'many'"),
        ({}, {"DETENT_REQUIRE_TENANT_HEADER": "perhaps"}, "must be true or false"),
        ({"port": "x"}, {}, "--port must be a whole number"),
    ],
)
def test_an_unknown_or_wrong_setting_is_refused_by_its_name(flags, environment, said):
    with pytest.raises(RequestError, match=r"request\.invalid") as refused:
        load_settings(flags, environment)
    assert said in refused.value.message


def test_a_file_with_an_unknown_name_is_refused(tmp_path):
    file = tmp_path / "d.toml"
    file.write_text("prot = 1\n")
    with pytest.raises(RequestError, match="did you mean port"):
        load_settings({}, {}, str(file))
    with pytest.raises(RequestError, match=r"file\.missing"):
        load_settings({}, {}, str(tmp_path / "none.toml"))


def test_what_has_no_effect_is_told(tmp_path):
    assert without_effect({}, {"DETENT_CRON_TICK_SECS": "5"}) == ["cron_tick_secs"]
    assert load_settings({}, {"DETENT_CRON_TICK_SECS": "5"}) == ServerSettings(cron_tick_secs=5)

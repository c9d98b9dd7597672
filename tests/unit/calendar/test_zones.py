"""Zones come from the tzdata package, and an unknown one is refused with a near match."""

from __future__ import annotations

import zoneinfo
from datetime import datetime, timedelta
from importlib.resources import files

import pytest
import tzdata

from detent.calendar import check_zone, local_of, tzdata_version
from detent.calendar.zones import rules_of, zone_names
from detent.model.errors import RequestError


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5"])
def test_a_zone_of_the_data_is_returned_as_it_is(name):
    assert check_zone(name) == name


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_a_slip_is_answered_with_the_zone_that_was_meant(name, near):
    with pytest.raises(RequestError, match=f"did you mean {near}") as refused:
        check_zone(name)
    assert refused.value.code == "calendar.zone"
    assert refused.value.details == {"zone": name}


@pytest.mark.parametrize(
    "name", ["", "Middle-earth", "../../etc/passwd", "Europe", "zones", "Factory", None, 7, ["UTC"]]
)
def test_what_is_no_zone_is_refused_and_never_taken_for_utc(name):
    with pytest.raises(RequestError) as refused:
        check_zone(name)
    assert refused.value.code == "calendar.zone"


def test_a_very_long_name_is_shortened_in_the_sentence():
    with pytest.raises(RequestError) as refused:
        check_zone("x" * 100_000)
    assert len(refused.value.message) < 200


def test_a_function_refuses_an_unknown_zone_too():
    with pytest.raises(RequestError) as refused:
        rules_of("Mars/Base")
    assert refused.value.code == "calendar.zone"


def test_the_version_is_that_of_the_package_and_every_name_can_be_read():
    assert tzdata_version() == tzdata.IANA_VERSION
    assert len(zone_names()) > 590
    assert all(rules_of(name).key == name for name in zone_names())


def test_the_files_of_the_machine_are_not_asked(tmp_path):
    # A machine whose own file for Berlin holds the rules of Tokyo: zoneinfo believes it.
    (tmp_path / "Europe").mkdir()
    tokyo = files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (tmp_path / "Europe" / "Berlin").write_bytes(tokyo)
    zoneinfo.reset_tzpath([str(tmp_path)])
    rules_of.cache_clear()
    try:
        believed = zoneinfo.ZoneInfo.no_cache("Europe/Berlin").utcoffset(datetime(2026, 1, 1))
        assert believed == timedelta(hours=9)
        assert local_of(0, "Europe/Berlin") == datetime(1970, 1, 1, 1)
    finally:
        zoneinfo.reset_tzpath()
        rules_of.cache_clear()

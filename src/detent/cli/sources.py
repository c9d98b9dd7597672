"""What a command line names: definition files, Python files with handlers, and JSON values."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from detent.cli.screen import clean
from detent.cli.values import WrongValue
from detent.definition import parse, read, unknown_fields
from detent.model.definition import Definition
from detent.model.errors import RequestError


class Source(NamedTuple):
    """A definition as it was found; a Python file brings its handlers along."""

    definition: Definition
    module: ModuleType | None = None


def load_definition(file: str, *, warn: bool = False) -> Source:
    """The definition of a file; in Python the only one, or the one named as `file.py:name`.

    With `warn`, fields that are ignored are told on standard error.
    """
    path, name = _split(file)
    if path.suffix != ".py":
        parsed = parse(_readable(path))
        for each in unknown_fields(read(path)) if warn else ():
            sys.stderr.write(f"warning: {file}: {clean(each)}\n")
        return Source(parsed)
    module = load_module(str(path))
    found = {each: value for each, value in vars(module).items() if isinstance(value, Definition)}
    if name and name in found:
        return Source(found[name], module)
    if not name and len(found) == 1:
        return Source(next(iter(found.values())), module)
    listed = ", ".join(found) or "none"
    raise RequestError(
        "request.invalid",
        f"{path} must hold one definition, or name one as {path}:name; it has {listed}",
    )


def named_definition(to: str) -> Any:
    """A definition from a file, or the name of a stored one."""
    try:
        return load_definition(to, warn=True).definition
    except RequestError as error:
        if error.code != "file.missing" or to.endswith((".py", ".json", ".yaml", ".yml")):
            raise
        return to


def load_definitions(file: str) -> list[Definition]:
    """Every definition of a file."""
    path, name = _split(file)
    if path.suffix != ".py" or name:
        return [load_definition(file).definition]
    values = vars(load_module(str(path))).values()
    return [value for value in values if isinstance(value, Definition)]


def read_raw(file: str) -> Any:
    """The data of a YAML or JSON file before it is checked; None for a Python file."""
    path, _ = _split(file)
    return None if path.suffix == ".py" else read(_readable(path))


def load_module(name: str) -> ModuleType:
    """Import a Python file, or a module by its dotted name from here."""
    is_file = name.endswith(".py") or os.sep in name
    path = _readable(Path(name)) if is_file else None
    try:
        return _import_file(path) if path is not None else _import_name(name)
    except Exception as error:
        if os.environ.get("DETENT_DEBUG") == "1":
            traceback.print_exception(error)
        raise RequestError("handler.import", _why(name, error)) from error


def load_handlers(name: str) -> Any:
    """The handlers of a module or file, all of them or those under one name: `module:name`."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not attribute.isidentifier():
        return load_module(name)
    try:
        return getattr(load_module(place), attribute)
    except AttributeError:
        raise RequestError(
            "handler.import", f"{place} has no {attribute!r}; name a handler or a list of them"
        ) from None


def json_value(given: str, option: str) -> Any:
    """A JSON value from the command line, or from a file when it begins with @."""
    text: bytes = given.encode()
    if given.startswith("@"):
        text = read_file(given[1:])
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        said = f"expected JSON, or @file with JSON; {error}"
        raise WrongValue(said, "payload.invalid", option) from None


def read_file(name: str) -> bytes:
    """The bytes of a file that must be there."""
    return _readable(Path(name)).read_bytes()


def _import_file(path: Path) -> ModuleType:
    resolved = path.resolve()
    spec = importlib.util.spec_from_file_location(resolved.stem, resolved)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    _make_reachable(resolved.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(resolved.stem, module)
    spec.loader.exec_module(module)
    return module


def _import_name(name: str) -> ModuleType:
    _make_reachable(Path.cwd())
    return importlib.import_module(name)


def _make_reachable(directory: Path) -> None:
    """What stands beside a file can be imported by it, as when Python runs the file."""
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _why(name: str, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    base = Path(name).name
    line = next((each.lineno for each in reversed(frames) if Path(each.filename).name == base), 0)
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
    where = f"{name}, line {line}" if line else name
    return f"{where} cannot be imported ({type(error).__name__}: {error}); correct it"


def _split(file: str) -> tuple[Path, str]:
    base, colon, name = file.rpartition(":")
    if colon and base.endswith(".py"):
        return Path(base), name
    return Path(file), ""


def _readable(path: Path) -> Path:
    if not path.is_file():
        kind = "is a directory" if path.is_dir() else "does not exist"
        raise RequestError("file.missing", f"{path} {kind}; name a file that can be read")
    if not os.access(path, os.R_OK):
        raise RequestError("file.missing", f"{path} cannot be read; check its permissions")
    return path

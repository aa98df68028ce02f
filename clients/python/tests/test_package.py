"""What is written in several places is the same everywhere."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import polynym
from polynym import reasons, v1

ROOT = Path(__file__).resolve().parents[3]


def test_the_version_is_that_of_the_workspace() -> None:
    workspace = (ROOT / "Cargo.toml").read_text()
    found = re.search(r'^\[workspace\.package\]\nversion = "(.*)"', workspace, re.MULTILINE)
    assert found
    assert polynym.__version__ == version("polynym") == found[1]


def test_the_licence_is_that_of_the_checkout() -> None:
    assert (ROOT / "clients/python/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_all_reasons_are_constants() -> None:
    table = (ROOT / "docs/api.md").read_text().split("\n## Errors", 1)[1]
    documented = set()
    for line in table.splitlines():
        cells = line.split(" | ")
        if len(cells) > 2 and re.fullmatch(r"`[A-Z_]+`(, `[A-Z_]+`)*", cells[1]):
            documented |= set(re.findall(r"[A-Z_]+", cells[1]))
    constants = {name: value for name, value in vars(reasons).items() if name.isupper()}
    assert len(documented) > 50
    assert set(constants) == documented
    assert all(name == value for name, value in constants.items())


def test_an_event_has_its_kind() -> None:
    for kind in v1.EventType.values():
        name = v1.EventType.Name(kind).removeprefix("EVENT_TYPE_").lower()
        event = v1.Event()
        if kind:
            getattr(event, name).SetInParent()
        assert polynym.event_type(event) == kind
        assert f"{polynym.event_type(event)}" == v1.EventType.Name(kind)
        assert repr([polynym.event_type(event)]) == f"[{v1.EventType.Name(kind)}]"
        assert v1.WatchRequest(types=[polynym.event_type(event)]).types == [kind]
        assert polynym.WatchEvent(event, "token").type == kind

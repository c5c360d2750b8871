"""The fields of a request's JSON object, each taken with a check of its type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from treadle.models.serving.errors import ApiError

_HALF_OF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_WORDS = {
    str: "a string", bool: "true or false", int: "an integer", float: "a number",
    list: "an array", dict: "an object", type(None): "null",
}  # fmt: skip


def parse_json(data: bytes) -> dict[str, Any]:
    """The object that a body holds. ApiError for anything else."""
    try:
        found = json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply") from None
    except ValueError as error:  # of JSON, or of UTF-8
        raise ApiError(400, f"the body is not JSON: {error}") from None
    if _HALF_OF_A_PAIR.search(data):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ApiError(
                400,
                "the body has half of a surrogate pair (\\ud800 to \\udfff), which is not Unicode",
            ) from None
    if not isinstance(found, dict):
        raise ApiError(400, f"the body must be a JSON object, not {kind_of(found)}")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def kind_of(value: Any) -> str:
    """The type of a value, in JSON's words."""
    return _WORDS.get(type(value), "another type")


def shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, (dict, list)) else ""
    return text if text and len(text) <= 60 else kind_of(value)


class Fields:
    """A JSON object whose fields are taken one by one; what is left at the end is unknown."""

    def __init__(self, given: Mapping[str, Any], within: str = "") -> None:
        self._given = dict(given)
        self._within = f"{within}." if within else ""

    def name(self, field: str) -> str:
        """The field's name within the whole request."""
        return self._within + field

    def take(self, field: str, *kinds: type, default: Any = None) -> Any:
        """A field of one of these types; the default where it is missing or null."""
        value = self._given.pop(field, None)
        if value is None:
            return default
        if type(value) in kinds or (float in kinds and type(value) is int):
            return value
        wanted = " or ".join(_WORDS[kind] for kind in kinds)
        raise self.wrong(field, f"must be {wanted}, not {shown(value)}")

    def need(self, field: str, *kinds: type) -> Any:
        """A field that must be there."""
        value = self.take(field, *kinds)
        if value is None:
            raise self.wrong(field, "is missing")
        return value

    def integer(self, field: str, least: int, most: int, default: Any = None) -> Any:
        """An integer within bounds."""
        value = self.take(field, int, default=default)
        if value is not None and not least <= value <= most:
            raise self.wrong(field, f"must be from {least} to {most}, not {shown(value)}")
        return value

    def one_of(self, field: str, choices: Iterable[str], default: str | None = None) -> Any:
        """One of some strings."""
        known = list(choices)
        value = self.take(field, str, default=default)
        if value is not None and value not in known:
            raise self.wrong(field, f"must be one of {', '.join(known)}, not {shown(value)}")
        return value

    def strings(self, field: str, most: int) -> list[str]:
        """A string or an array of strings."""
        value = self.take(field, str, list, default=[])
        found = [value] if isinstance(value, str) else value
        if len(found) > most:
            raise self.wrong(field, f"may have at most {most} strings, not {len(found)}")
        for each in found:
            if not isinstance(each, str) or not each:
                raise self.wrong(field, f"must have strings that are not empty, not {shown(each)}")
        return list(found)

    def ignore(self, *names: str) -> None:
        """Fields that change nothing here."""
        for name in names:
            self._given.pop(name, None)

    def refuse(self, field: str, reason: str) -> None:
        """Refuse a field that is there and not null."""
        if self._given.pop(field, None) is not None:
            raise self.wrong(field, reason)

    def end(self) -> None:
        """Refuse what no one has taken."""
        for field in self._given:
            raise self.wrong(field, "is not a field that this server knows", code="unknown_field")

    def wrong(self, field: str, what: str, code: str | None = None) -> ApiError:
        """An error of a field."""
        name = self.name(field if len(field) <= 60 else f"{field[:57]}…")
        return ApiError(400, f"{name} {what}", param=name, code=code)

"""Every setting once: key, type, default, bounds, meaning; and where its value comes from.

A value is looked up at each call, in this order: a stored value (the mapping a `SiteConfig` was
given), the `app_settings` table where a `citeflow.settings_store.SettingsStore` keeps it current,
the environment variable `CITEFLOW_<KEY>`, the default declared here. A blank value counts as unset.
A value that cannot be read as the setting's type warns once per value and the default is used, so
that a typo never switches a safety gate off; a number outside the bounds is moved to the nearest
bound.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from citeflow._setting_table import ENV_ALIASES, SECRET_SETTINGS, SETTING_TABLE
from citeflow.errors import SettingsError
from citeflow.finding_kinds import DELIVERIES

__all__ = [
    "ENV_PREFIX",
    "REGISTRY",
    "Setting",
    "SiteConfig",
    "Value",
    "check_value",
    "env_name",
    "parse_value",
]

logger = logging.getLogger(__name__)

ENV_PREFIX = "CITEFLOW_"

Value = str | bool | int | float

WORDS: Mapping[str, tuple[str, ...]] = {
    "delivery": DELIVERIES,
    "min_severity": ("warn", "error", "critical"),
}
"""The words that the last part of a policy's key admits."""

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


def env_name(key: str) -> str:
    """The environment variable of a setting; dots in its key become underscores."""
    return ENV_PREFIX + key.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its key, default (whose type is the setting's type), bounds and meaning."""

    key: str
    default: Value
    doc: str
    minimum: float | None = None
    maximum: float | None = None

    @property
    def type_name(self) -> str:
        """One of `bool`, `int`, `float`, `str`."""
        return type(self.default).__name__

    @property
    def env_name(self) -> str:
        """The environment variable that sets it."""
        return env_name(self.key)

    @property
    def secret(self) -> bool:
        """True when the value must not be printed."""
        return self.key in SECRET_SETTINGS


REGISTRY: Mapping[str, Setting] = {
    key: Setting(key, default, doc, minimum, maximum)
    for key, default, minimum, maximum, doc in SETTING_TABLE
}


def _parse_bool(raw: str) -> bool:
    word = raw.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("expected one of true, 1, yes, on, false, 0, no, off")


def _parse_number(setting: Setting, raw: str) -> int | float:
    number = int(raw.strip()) if isinstance(setting.default, int) else float(raw.strip())
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    if setting.minimum is not None and number < setting.minimum:
        return type(setting.default)(setting.minimum)  # type: ignore[return-value]
    if setting.maximum is not None and number > setting.maximum:
        return type(setting.default)(setting.maximum)  # type: ignore[return-value]
    return number


def parse_value(setting: Setting, raw: str) -> Value:
    """Read `raw` as the setting's type, moved into its bounds.

    Raises `SettingsError` when it cannot be read.
    """
    try:
        if isinstance(setting.default, bool):
            return _parse_bool(raw)
        if isinstance(setting.default, int | float):
            return _parse_number(setting, raw)
    except (ValueError, OverflowError) as exc:
        raise SettingsError(f"{setting.key}: {exc}, got {raw!r}") from exc
    return raw


def check_value(setting: Setting, raw: str) -> Value:
    """Read `raw` as a person's input: nothing is moved into bounds.

    Raises `SettingsError` when it cannot be read, is out of bounds or not one of the words that
    the setting knows.
    """
    value = parse_value(setting, raw)
    if isinstance(value, bool | str):
        words = WORDS.get(setting.key.rpartition(".")[2] if "." in setting.key else "")
        if words and str(value).strip().lower() not in words:
            raise SettingsError(f"{setting.key}: expected one of {', '.join(words)}, got {raw!r}")
        return value
    number = float(raw)
    low, high = setting.minimum, setting.maximum
    if (low is not None and number < low) or (high is not None and number > high):
        ends = " to ".join("" if end is None else f"{end:.12g}" for end in (low, high))
        raise SettingsError(f"{setting.key}: expected {ends}, got {raw!r}")
    return value


class SiteConfig:
    """The settings as one program sees them, read at each call.

    `values` are stored values by key (any scalar; they are read through their string form).
    `environ` defaults to the process environment. Instances may be shared between threads.
    """

    def __init__(
        self,
        values: Mapping[str, object] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._values: dict[str, str] = {}
        self._database: Mapping[str, str] = {}
        self._warned: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self.reload(values or {})

    def reload(self, values: Mapping[str, object]) -> None:
        """Replace all stored values at once."""
        self._values = {
            key: (str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in values.items()
            if value is not None
        }

    def reload_database(self, values: Mapping[str, str]) -> None:
        """Replace all values of the database at once; unknown keys are told once, and kept."""
        for key in values.keys() - REGISTRY.keys():
            # A policy of a kind of finding that is not citeflow's own is one.
            if not key.startswith("findings."):
                self._warn_once(key, "", f"{key} is in app_settings, and no setting")
        self._database = dict(values)

    def with_values(self, values: Mapping[str, object]) -> SiteConfig:
        """A copy, as things stand, whose stored values are these on top of the current ones."""
        copy = SiteConfig({**self._values, **values}, environ=self._environ)
        copy._database = self._database
        return copy

    def raw(self, key: str) -> tuple[str, str] | None:
        """The unread value and where it comes from, None if unset.

        From the program (`stored`), the `database` or the `environment`.
        """
        layers = self.layers(key)
        return layers[0] if layers else None

    def layers(self, key: str) -> list[tuple[str, str]]:
        """Every value that is set, unread, with where it comes from; the first one counts."""
        found = [(self._values.get(key, ""), "stored"), (self._database.get(key, ""), "database")]
        names = (env_name(key), ENV_ALIASES.get(key, ""))
        found += [(self._environ.get(name, "") if name else "", "environment") for name in names]
        return [(value, source) for value, source in found if value.strip()]

    def value(self, key: str) -> Value:
        """The value of a registered setting, in its own type and bounds.

        Raises `KeyError` for a key that is not registered.
        """
        setting = REGISTRY[key]
        found = self.raw(key)
        if found is None:
            return setting.default
        try:
            return parse_value(setting, found[0])
        except SettingsError as exc:
            self._warn_once(key, found[0], str(exc))
            return setting.default

    def get_str(self, key: str) -> str:
        """The value as a string."""
        return str(self.value(key))

    def get_bool(self, key: str) -> bool:
        """The value of a boolean setting."""
        value = self.value(key)
        if not isinstance(value, bool):
            raise TypeError(f"{key} is not a boolean setting")
        return value

    def get_int(self, key: str) -> int:
        """The value of an integer setting."""
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{key} is not an integer setting")
        return value

    def get_float(self, key: str) -> float:
        """The value of a numeric setting as a float."""
        value = self.value(key)
        if isinstance(value, bool | str):
            raise TypeError(f"{key} is not a numeric setting")
        return float(value)

    def get_list(self, key: str) -> tuple[str, ...]:
        """A comma-separated setting as its non-blank parts, stripped; the default if none."""
        parts = _split(self.get_str(key))
        return parts or _split(str(REGISTRY[key].default))

    def overrides(self, keys: frozenset[str] | None = None) -> dict[str, str]:
        """The settings whose value differs from the default, by key, in string form."""
        changed = {}
        for key, setting in sorted(REGISTRY.items()):
            if keys is not None and key not in keys:
                continue
            value = self.value(key)
            if value != setting.default:
                changed[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return changed

    def _warn_once(self, key: str, raw: str, message: str) -> None:
        with self._lock:
            if (key, raw) in self._warned:
                return
            self._warned.add((key, raw))
        logger.warning("setting ignored: %s", message)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())

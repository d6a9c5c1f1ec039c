"""The configuration of a process from its environment, with the broker's peculiarities."""

from __future__ import annotations

import os
from collections.abc import Mapping

from citeflow.errors import SettingsError
from streams.config import StreamConfig
from streams.embedded import embedded_profile

__all__ = ["PROFILE_ENV", "load_config"]

PROFILE_ENV = "CITEFLOW_BROKER_PROFILE"


def load_config(environ: Mapping[str, str] | None = None) -> StreamConfig:
    """As `StreamConfig.from_env`; `CITEFLOW_BROKER_PROFILE=embedded` adapts to that broker.

    Needed only for a further process at a broker that `python -m streams dev` started. Raises
    `SettingsError`.
    """
    env = os.environ if environ is None else environ
    config = StreamConfig.from_env(env)
    profile = env.get(PROFILE_ENV, "").strip() or "kafka"
    if profile == "kafka":
        return config
    if profile != "embedded":
        raise SettingsError(f"{PROFILE_ENV}: expected kafka or embedded, got {profile!r}")
    return embedded_profile(config, config.broker)

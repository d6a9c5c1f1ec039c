"""A small web on loopback, with a search engine over it: for trying citeflow without internet."""

from __future__ import annotations

from streams.demo.web import DemoWeb

__all__ = ["DemoWeb"]

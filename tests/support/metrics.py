"""Reading what a worker says of itself."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["samples"]


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """The values by name and sorted labels. Raises `ValueError` for what is not the format."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }

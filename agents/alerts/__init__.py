"""Findings as alerts: who hears of what, how often, and in what words. Knows nothing of Kafka."""

from agents.alerts.channels import Channels, Delivery
from agents.alerts.discord import DiscordWebhook, Refused
from agents.alerts.message import finding_message, summary_finding
from agents.alerts.policy import Policy, Verdict, judge, policy_of, window_of
from agents.alerts.state import AlertState, Parked, trimmed

__all__ = [
    "AlertState",
    "Channels",
    "Delivery",
    "DiscordWebhook",
    "Parked",
    "Policy",
    "Refused",
    "Verdict",
    "finding_message",
    "judge",
    "policy_of",
    "summary_finding",
    "trimmed",
    "window_of",
]

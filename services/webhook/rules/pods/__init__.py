"""Rules for pod templates: what decides whether their pods can ever be made.

Kubernetes checks more when it gets the pod; what would fail there for ever is better said
before the job waits in a queue. The work grows with the template, no faster.
"""

from __future__ import annotations

from services.webhook.rules.pods.resources import is_integral, whole_cores
from services.webhook.rules.pods.template import violations
from services.webhook.rules.pods.unknown import CLAIM, unknown
from services.webhook.rules.pods.volumes import mounts

__all__ = ["CLAIM", "is_integral", "mounts", "unknown", "violations", "whole_cores"]

"""Connections to services: how they are kept, and what is tried again."""

from __future__ import annotations

import json
from typing import Final

import grpc

from hekla.rpc.server import LARGEST_MESSAGE

_RETRY: Final = {
    "methodConfig": [
        {
            "name": [{}],  # every method: reads are safe to repeat, writes carry a request id
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}

_OPTIONS: Final = (
    ("grpc.service_config", json.dumps(_RETRY)),
    ("grpc.enable_retries", 1),
    ("grpc.enable_http_proxy", 0),  # a proxy for the web does not lead to our services
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A service that was started again is found within a second, not within two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


def connect(address: str) -> grpc.Channel:
    """A channel to ``host:port`` or ``unix:/path``; it connects when it is first used.

    Calls that find nobody are tried again for about a second. Every call names a deadline.
    """
    return grpc.insecure_channel(address, options=_OPTIONS)

"""Whether the second front door is open: jobs that come as custom resources are taken.

One job that is only tried (``dryRun``) shows all of it: its kind is defined, the API server
reaches the webhook and believes its certificate, and the webhook knows the queue.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final

from hekla.local.stack.endpoints import LOOPBACK

TIMEOUT: Final = 5.0
QUEUES: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
TRY: Final = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs?dryRun=All"
WELL_KNOWN: Final = frozenset({"root", "default"})
_JOB: Final[Mapping[str, Any]] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"generateName": "hekla-up-"},
    "spec": {
        "tasks": [
            {
                "replicas": 1,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "none", "command": ["true"]}],
                    }
                },
            }
        ]
    },
}


def why_not(port: int) -> str | None:
    """Why the API server at a port of this machine takes no jobs yet; None if it does."""
    code, answer = _ask(port, "GET", QUEUES)
    if code == 404:
        return "the custom resources are not defined"
    if code != 200:
        return f"queues cannot be read: {_message(answer)}"
    missing = WELL_KNOWN - {item["metadata"]["name"] for item in answer["items"]}
    if missing:
        return f"the controller has not made the queue {min(missing)} yet"
    code, answer = _ask(port, "POST", TRY, _JOB)
    return None if code == 201 else f"no job is taken: {_message(answer)}"


def _ask(port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        return 0, {"message": str(error) or type(error).__name__}
    finally:
        connection.close()


def _message(answer: Any) -> str:
    found = answer.get("message") if isinstance(answer, dict) else None
    return str(found or "no reason is given")

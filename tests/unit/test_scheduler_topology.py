"""How many nodes a hypernode holds."""

from __future__ import annotations

from typing import Any

import pytest

from services.scheduler.core.topology import node_counts
from services.scheduler.projection import hyper_node

NODES = {
    "n1": {"rack": "a"},
    "n2": {"rack": "a"},
    "n3": {"rack": "b", "gpu": "yes"},
    "gpu-4": {"rack": "b", "gpu": "yes"},
}


def tree(**members: list[dict[str, Any]]) -> dict[str, int]:
    """The counts of these hypernodes, over ``NODES``."""
    items = [
        {"metadata": {"name": name}, "spec": {"tier": 1, "members": each}}
        for name, each in members.items()
    ]
    return node_counts(map(hyper_node, items), NODES)


def node(**selector: Any) -> dict[str, Any]:
    return {"type": "Node", "selector": selector}


def below(**selector: Any) -> dict[str, Any]:
    return {"type": "HyperNode", "selector": selector}


def exact(name: str) -> dict[str, Any]:
    return {"name": name}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param(
            [node(exactMatch=exact("n1")), node(exactMatch=exact("n2"))], 2, id="each"
        ),
        pytest.param(
            [node(exactMatch=exact("n1"))] * 2, 1, id="a node named twice counts once"
        ),
        pytest.param([node(exactMatch=exact("n9"))], 0, id="a node that is not there"),
        pytest.param([node(regexMatch={"pattern": "n[12]"})], 2, id="a pattern"),
        pytest.param([node(regexMatch={"pattern": "pu"})], 1, id="somewhere in the name"),
        pytest.param([node(regexMatch={"pattern": r"^n\d\z"})], 3, id="as Go writes ends"),
        pytest.param([node(regexMatch={"pattern": "a(b"})], 0, id="no pattern at all"),
        pytest.param([node(labelMatch={"matchLabels": {"rack": "b"}})], 2, id="labels"),
        pytest.param(
            [
                node(
                    labelMatch={
                        "matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]
                    }
                )
            ],
            2,
            id="labels that are absent",
        ),
        pytest.param(
            [node(labelMatch={"matchExpressions": [{"key": "gpu", "operator": "Is"}]})],
            0,
            id="an operator that there is not",
        ),
        pytest.param([node(labelMatch={})], 0, id="no labels at all mean no node"),
        pytest.param([{"type": "Node"}], 0, id="a member without a selector"),
        pytest.param(
            [
                node(regexMatch={"pattern": "n"}),
                node(labelMatch={"matchLabels": {"gpu": "yes"}}),
            ],
            4,
            id="several ways together",
        ),
        pytest.param([], 0, id="no members"),
    ],
)
def test_members_are_chosen_by_name_pattern_or_labels(
    members: list[dict[str, Any]], expected: int
) -> None:
    assert tree(one=members) == {"one": expected}


def test_what_is_in_hypernodes_below_counts_once() -> None:
    counts = tree(
        rack_a=[node(labelMatch={"matchLabels": {"rack": "a"}})],
        rack_b=[node(labelMatch={"matchLabels": {"rack": "b"}})],
        gpus=[node(labelMatch={"matchLabels": {"gpu": "yes"}}), node(exactMatch=exact("n1"))],
        top=[
            below(regexMatch={"pattern": "^rack"}),
            below(exactMatch=exact("gpus")),
            below(exactMatch=exact("nowhere")),
            below(labelMatch={"matchLabels": {"rack": "a"}}),
        ],
    )

    assert counts == {"rack_a": 2, "rack_b": 2, "gpus": 3, "top": 4}


def test_hypernodes_in_a_circle_hold_the_same_nodes() -> None:
    counts = tree(
        one=[node(exactMatch=exact("n1")), below(exactMatch=exact("two"))],
        two=[node(exactMatch=exact("n2")), below(exactMatch=exact("one"))],
    )

    assert counts == {"one": 2, "two": 2}

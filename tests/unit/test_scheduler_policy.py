"""``volcano-scheduler.conf``: what loads, what is left out with a warning, what is an error."""

from __future__ import annotations

import pytest

from hekla.domain.errors import InvalidError
from services.scheduler import policy
from services.scheduler.actions import registry as actions
from services.scheduler.plugins import registry as plugins
from services.scheduler.plugins.binpack import Binpack
from tests.support.cluster import add_gang, cluster_with, decide, node, placed


def plugins_conf(text: str) -> str:
    return f'actions: "enqueue, allocate"\ntiers:\n- plugins:\n{text}'


def test_the_configuration_of_the_helm_chart_loads() -> None:
    loaded = policy.load()

    assert loaded.actions == ("enqueue", "allocate", "backfill")
    assert loaded.tiers == (("priority", "gang"), ("predicates", "nodeorder", "binpack"))
    assert "plugin drf is not built yet and left out" in loaded.warnings


def test_everything_volcano_knows_is_accepted() -> None:
    names = sorted({*plugins.PLUGINS, *plugins.NOT_BUILT})
    assert len(names) == 24
    lines = "".join(f"  - name: {name}\n" for name in names)
    steps = ", ".join(sorted({*actions.ACTIONS, *actions.NOT_BUILT}))
    text = f"""
actions: "{steps}"
tiers:
- plugins:
{lines}
configurations:
- name: allocate
  arguments: {{predicateErrorCacheEnable: true}}
metrics:
  type: prometheus
"""
    loaded = policy.load(text)

    assert loaded.actions == ("allocate", "backfill", "enqueue")
    assert len(loaded.warnings) == 5 + 19 + 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            'actions: "enqueue, alocate"\ntiers: []',
            "actions: unknown action 'alocate', known are allocate, backfill, enqueue,",
            id="an unknown action",
        ),
        pytest.param(
            plugins_conf("  - name: gong"),
            "tiers[0].plugins[0]: unknown plugin 'gong', known are binpack, capacity,",
            id="an unknown plugin",
        ),
        pytest.param(
            plugins_conf('  - name: binpack\n    arguments: {binpack.weight: "10"}'),
            "tiers[0].plugins[0].arguments.binpack.weight: must be a whole number, is '10'",
            id="an argument of the wrong type",
        ),
        pytest.param(
            plugins_conf("  - name: predicates\n    arguments: {predicate.CacheEnable: 3}"),
            "predicate.CacheEnable: must be true or false, is 3",
            id="a flag of the wrong type",
        ),
        pytest.param(
            plugins_conf("  - name: gang\n    enabledJobOrder: false"),
            "tiers[0].plugins[0].enabledJobOrder: unknown key, known are",
            id="a flag misspelt",
        ),
        pytest.param(
            plugins_conf("  - name: gang\n    enableJobOrder: 1"),
            "enableJobOrder: must be true or false, is 1",
            id="a flag that is no truth value",
        ),
        pytest.param(
            "tiers: []", "actions: must be names separated by commas", id="no actions"
        ),
        pytest.param('actions: "allocate"', "tiers: must be a list", id="no tiers"),
        pytest.param("- a", "must be a mapping", id="no mapping"),
        pytest.param("actions: [", "is not YAML", id="no YAML"),
        pytest.param(
            'actions: "allocate"\ntiers: []\nplugins: []',
            "plugins: unknown key, known are actions, configurations, metrics, tiers",
            id="an unknown key",
        ),
        pytest.param(
            'actions: "allocate"\ntiers: [3]',
            "tiers[0]: must be a mapping with the key plugins",
            id="a tier of the wrong shape",
        ),
        pytest.param(
            'actions: "allocate"\ntiers: []\nconfigurations: [{name: alocate}]',
            "configurations[0]: unknown action 'alocate'",
            id="arguments of an unknown action",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidError) as error:
        policy.load(text)

    assert message in str(error.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidError) as error:
        policy.load('actions: "a, b"\ntiers: [{plugins: [{name: c}]}]')

    assert len(error.value.violations) == 3


def test_an_argument_nobody_reads_is_a_warning() -> None:
    conf = plugins_conf(
        "  - name: predicates\n    arguments: {predicate.GPUSharingEnable: true}"
    )

    [warning] = policy.load(conf).warnings

    assert warning == "plugin predicates has no argument predicate.GPUSharingEnable"


def test_a_plugin_named_in_two_tiers_is_one_plugin_with_flags_of_its_own_there() -> None:
    text = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
    enableJobReady: false
- plugins:
  - name: gang
"""
    framework = policy.load(text).framework
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "g", {"t": (2, {"cpu": 1})})

    assert len(framework.plugins) == 1
    assert not decide(cluster, framework).binds, "the second tier still asks it"


def test_a_flag_switches_its_extension_point_off() -> None:
    text = plugins_conf("  - name: gang\n    enableJobReady: false")
    cluster = cluster_with(node("a", 1))
    add_gang(cluster, "g", {"t": (2, {"cpu": 1})})

    assert len(decide(cluster, policy.load(text).framework).binds) == 1


def test_switched_off_predicates_let_pods_on_cordoned_nodes() -> None:
    text = plugins_conf("  - name: predicates\n    enablePredicate: false")
    cluster = cluster_with(node("a", 1, unschedulable=True))
    add_gang(cluster, "g", {"t": (1, {"cpu": 1})})

    assert len(decide(cluster, policy.load(text).framework).binds) == 1


def test_the_arguments_of_binpack_choose_what_counts() -> None:
    conf = """
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 5
      binpack.memory: -3
      binpack.resources: "x/a, x/b"
      binpack.resources.x/b: 7
"""
    [plugin] = policy.load(plugins_conf(conf)).framework.plugins

    assert isinstance(plugin, Binpack)
    assert plugin.weight == 10
    assert plugin.weights == {"cpu": 5, "memory": 1, "x/a": 1, "x/b": 7}


def test_binpack_of_weight_zero_scores_nothing() -> None:
    conf = "  - name: binpack\n    arguments: {binpack.weight: 0}"

    assert policy.load(plugins_conf(conf)).framework.scorers == []


def test_binpack_prefers_the_node_that_would_be_fuller() -> None:
    framework = policy.load(plugins_conf("  - name: binpack")).framework
    cluster = cluster_with(node("a", 8), node("b", 4), node("c", 2, memory=1))
    add_gang(cluster, "g", {"t": (1, {"cpu": 2, "memory": 2})})
    # c would be full of cores, but has too little memory; of the others b would be fuller.

    assert placed(decide(cluster, framework)) == {"g-t-0": "b"}

"""Rows of the table of admission: all kinds but jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.support.admission_rows import (
    ANY,
    BOTH_TIERS,
    HIERARCHY,
    LEAST,
    MOST,
    NONE,
    WEIGHTS,
    Row,
    cron,
    flow,
    group,
    guarantee,
    hierarchy,
    hyper_node,
    job,
    job_template,
    member,
    pod,
    queue,
    task,
)


def of_queues() -> Iterator[Row]:
    """Queues by themselves."""
    for state in ("Open", "Closed", None):
        yield Row(f"AD-60..62, U187 {state}", queue(state=state))
    yield Row("U187 wrong", queue(state="wrong"), {"status.state": '"wrong"'})
    yield Row("§3.13 A5", queue(state="Closing"), {"status.state": '"Closing"'})
    yield Row("AD-63", queue(weight=-1), {"spec.weight": "-1"})
    yield Row("AD-80", queue("plain", weight=-1), {"spec.weight": "-1"}, old=queue("plain"))
    yield Row("AD-64, AD-83", queue(), stored={"spec.weight": 1, "spec.reclaimable": True})
    yield Row("AD-84", queue(weight=0), stored={"spec.weight": 1, "spec.reclaimable": True})
    kept = queue(weight=5, reclaimable=False)
    yield Row("AD-85", kept, stored={"spec.weight": 5, "spec.reclaimable": False})
    yield Row("AD-82, U206", queue(), stored={"spec.reclaimable": True})
    one, two = {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}
    much = guarantee(cpu="2", memory="3Gi")
    cpu, memory = "spec.guarantee.resource.cpu", "spec.guarantee.resource.memory"
    yield Row("AD-65", queue(deserved=one))
    yield Row("AD-66, U191", queue(guarantee=guarantee(cpu="1")), {cpu: '"1"'})
    yield Row("AD-67", queue(capability=one, deserved=two), {"spec.deserved.cpu": '"2"'})
    bad = queue(capability=one, guarantee=much)
    yield Row("AD-68", bad, {cpu: '"2"', memory: '"3Gi"'})
    yield Row("AD-69", queue(deserved=two, guarantee=much), {memory: '"3Gi"'})
    less = {"cpu": "3"}
    yield Row("AD-70", queue(capability=less, deserved=one))
    both = guarantee(cpu="1", memory="1Gi")
    yield Row("AD-71", queue(capability=less, deserved=one, guarantee=both))
    lacks = queue(deserved={"cpu": "1"}, guarantee=both)
    yield Row("AD-72", lacks, {memory: '"1Gi"'})
    yield Row("AD-73", hierarchy("root/a", None), {WEIGHTS: NONE})
    yield Row("AD-74", hierarchy("a/b", "1/2/3"), {WEIGHTS: '"1/1/2/3"'})
    yield Row("AD-75, U195", hierarchy("root/a/b", "1/2/3/4"), {WEIGHTS: '"1/2/3/4"'})
    yield Row("AD-76, U195", hierarchy("root/a/b", "1/-1/3"), {WEIGHTS: '"1/-1/3"'})
    yield Row("AD-77, U195", hierarchy("root/a/b", "1/a/3"), {WEIGHTS: '"1/a/3"'})
    yield Row("U195 above", hierarchy("root/node1", "1/2"), {HIERARCHY: '"root/node1"'})
    yield Row("U195 a prefix only", hierarchy("root/node", "1/2"))
    yield Row(
        "U206",
        hierarchy("a/b/c", "2/3/4"),
        stored={
            "metadata.annotations": {
                "volcano.sh/hierarchy": "root/a/b/c",
                "volcano.sh/hierarchy-weights": "1/2/3/4",
            }
        },
    )
    yield Row("AD-78", queue("open", state="Closed"), old=queue("open", state="Open"))
    deserved, given = "spec.deserved.memory", guarantee(memory="3Gi")
    yield Row("U193", queue(deserved={"memory": "1Gi"}, guarantee=given), {memory: '"3Gi"'})
    yield Row("U194", queue(capability={"cpu": "-1"}), {"spec.capability.cpu": '"-1"'})
    yield Row("U194 deserved", queue(deserved={"memory": "-1Gi"}), {deserved: '"-1Gi"'})
    yield Row("U194 guarantee", queue(guarantee=guarantee(cpu="-1")), {cpu: '"-1"'})
    half = queue(capability={"pods": "1500m"})
    yield Row("§3.13 A1", half, {"spec.capability.pods": '"1500m"'})
    root, grown = queue("root"), queue("root", capability={"cpu": "1"})
    yield Row("§3.13 C", grown, {"spec.capability": ANY}, old=root)
    yield Row(
        "§5 unbuilt queue",
        queue(type="x", affinity={"nodeGroupAffinity": {}}),
        warned=["queue-advice.unbuilt"],
    )


def of_trees() -> Iterator[Row]:
    """Queues among others."""
    yield Row("AD-81", queue(parent="plain"))
    yield Row("§3.13 B2", queue(parent="q"), {"spec.parent": '"q"'})
    yield Row("§3.13 B4", queue(parent="nope"), {"spec.parent": '"nope"'})
    yield Row("U203", queue(parent="d4"))
    yield Row("U203 too deep", queue(parent="d5"), {"spec.parent": '"d5"'})
    tall = queue("d1", parent="q11")
    yield Row(
        "§3.13 B3 with what is below",
        tall,
        {"spec.parent": '"q11"'},
        old=queue("d1", parent="root"),
        differs="measured with the queues below it",
    )
    yield Row("U197", queue(parent="busy"), {"spec.parent": '"busy"'})
    yield Row("U197 idle", queue(parent="idle"))
    moved = queue("root", parent="plain")
    yield Row(
        "root has no parent",
        moved,
        {"spec.parent": '"plain"'},
        old=queue("root"),
        differs="root may be given a parent",
    )
    above = queue(parent="cap", capability={"cpu": "20"})
    yield Row("U199", above, {"spec.capability.cpu": '"20"'})
    was = queue("cap", capability={"cpu": "15", "memory": "20Gi"})
    less = queue("cap", capability={"cpu": "10", "memory": "20Gi"})
    yield Row("U201", less, {"spec.capability.cpu": '"10"'}, old=was)
    gpus = "spec.capability[x.io/gpu]"
    old = queue("gpus", capability={"x.io/gpu": "4"})
    yield Row("U205", queue("gpus", capability={"x.io/gpu": "2"}), {gpus: '"2"'}, old=old)
    yield Row("U205 fits", queue("gpus", capability={"x.io/gpu": "3"}), old=old)
    yield Row("U205 child", queue(parent="gpus-a", capability={"x.io/gpu": "5"}), {gpus: '"5"'})
    yield Row("U205 no capability", queue(parent="plain", capability={"cpu": "50"}))
    amounts = {"cpu": "20", "memory": "40Gi"}
    was = queue("has", deserved=amounts, guarantee=guarantee(**amounts))
    now = queue("has", deserved=amounts, guarantee=guarantee(cpu="10", memory="20Gi"))
    cpu, memory = "spec.guarantee.resource.cpu", "spec.guarantee.resource.memory"
    yield Row("U202", now, {cpu: '"10"', memory: '"20Gi"'}, old=was)
    third = {"cpu": "8", "memory": "1Gi"}
    made = queue(parent="has", deserved=third)
    yield Row("§3.13 D1", made, {"spec.deserved.cpu": '"8"'})
    yield Row(
        "C112",
        queue(parent="plain", deserved={"cpu": "2"}, guarantee=guarantee(cpu="2")),
        differs="What a parent does not name has no bound",
    )
    much = {"cpu": "9"}
    yield Row(
        "C112 bounded",
        queue(parent="has", deserved=much, guarantee=guarantee(**much)),
        {cpu: '"9"', "spec.deserved.cpu": '"9"'},
    )
    yield Row(
        "C115",
        queue("shut-child", state="Open", parent="shut"),
        {"status.state": '"Open"'},
        old=queue("shut-child", state="Closed", parent="shut"),
        differs="opened below a closed one",
    )
    for name in ("root", "default"):
        yield Row(
            f"U189, C110 {name}", queue(name), {"metadata.name": f'"{name}"'}, delete=True
        )
    for name in ("open", "closed"):
        yield Row(f"JP-51, AD-79, U189 {name}", queue(name), delete=True)
    yield Row("U198, C110", queue("q1"), {"metadata.name": '"q1"'}, delete=True)
    yield Row(
        "U198 pods", queue("busy"), {"metadata.name": '"busy"'}, delete=True, protect_used=True
    )
    yield Row("U198 pods, unprotected", queue("busy"), delete=True)


def of_groups() -> Iterator[Row]:
    """Pod groups, and pods that somebody makes."""
    yield Row("AD-86, U207", group(queue="open"))
    yield Row("AD-88, AD-91", group("team", queue="q11"), stored={"spec.queue": "q11"})
    yield Row("AD-89", group("team"), stored={"spec.queue": "open"})
    yield Row("AD-90", group(), stored={"spec.queue": "default"})
    yield Row("U207 closed, C107", group(queue="closed"), {"spec.queue": '"closed"'})
    yield Row("U207 missing", group(queue="nope"), {"spec.queue": '"nope"'})
    path = "spec.networkTopology"
    yield Row("U207 topology", group(networkTopology=BOTH_TIERS), {path: ANY})
    sub = [{"name": "a", "networkTopology": BOTH_TIERS}]
    inside = "spec.subGroupPolicy[0].networkTopology"
    yield Row("U207 sub-group", group(subGroupPolicy=sub), {inside: ANY})
    two = group(queue="nope", subGroupPolicy=sub)
    yield Row("U207 two", two, {"spec.queue": '"nope"', inside: ANY})
    words = "Amounts and minimums of a pod group"
    less = group(minResources={"cpu": "-1"})
    yield Row("amounts of a group", less, {"spec.minResources.cpu": '"-1"'}, differs=words)
    less = group(minTaskMember={"a": -1})
    yield Row("minimums of tasks", less, {"spec.minTaskMember.a": "-1"}, differs=words)
    yield Row("AD-38", pod(least="2"))
    yield Row("AD-39", pod(most="50%"))
    for source, value in (("AD-40", "-1"), ("AD-41", "0")):
        yield Row(source, pod(least=value), {LEAST: f'"{value}"'})
    for source, value in (("AD-42", "0%"), ("AD-43", "100%"), ("AD-44", "invalid")):
        yield Row(source, pod(most=value), {MOST: f'"{value}"'})
    yield Row("AD-45", pod(least="1", most="1"), {MOST: '"1"'})
    yield Row("AD-46", pod())
    yield Row("AD-47", pod("default-scheduler", least="-1"))


def of_hyper_nodes() -> Iterator[Row]:
    """Hypernodes."""
    exact = member(exactMatch={"name": "node-1"})
    regex = member(regexMatch={"pattern": "node-[0-9]+"})
    yield Row("AD-92, U210", hyper_node(exact))
    yield Row("AD-93", hyper_node(regex))
    rack = {"matchLabels": {"topology-rack": "rack1"}}
    yield Row("AD-94, U210", hyper_node(member(labelMatch=rack)))
    selector = "spec.members[0].selector"
    name, pattern = f"{selector}.exactMatch.name", f"{selector}.regexMatch.pattern"
    yield Row("AD-95", hyper_node(member(exactMatch={"name": ""})), {name: '""'})
    yield Row("AD-96", hyper_node(member(regexMatch={"pattern": ""})), {pattern: '""'})
    bad = hyper_node(member(regexMatch={"pattern": "a(b"}))
    yield Row("AD-97, U210", bad, {pattern: '"a(b"'})
    back = hyper_node(member(regexMatch={"pattern": "(?=a)b"}))
    yield Row("§3.16 RE2", back, {pattern: '"(?=a)b"'})
    yield Row("AD-98", hyper_node(), {"spec.members": NONE})
    none = hyper_node()
    del none["spec"]["members"]
    yield Row("AD-98 without the key", none, {"spec.members": NONE})
    odd = "Node_with_invalid@characters"
    yield Row("AD-99", hyper_node(member(exactMatch={"name": odd})), {name: f'"{odd}"'})
    yield Row("AD-100", hyper_node(regex), old=hyper_node(exact))
    yield Row("AD-101", hyper_node(), {"spec.members": NONE}, old=hyper_node(exact))
    words = "a member says which nodes it means"
    yield Row(
        "a member of nothing", hyper_node({"type": "Node"}), {selector: NONE}, differs=words
    )


def of_flows() -> Iterator[Row]:
    """Flows and templates."""
    graph = {"a": "", "b": "a", "c": "a b", "d": "b", "e": "c d"}
    yield Row("AD-102, U211", flow(**graph))
    words = "A flow may be empty, name a step twice, and change while it runs"
    again = flow("f", {"name": "a"}, a="")
    yield Row("AD-103, U211", again, {"spec.flows[1].name": '"a"'}, differs=words)
    target = "spec.flows[1].dependsOn.targets[0]"
    yield Row("AD-104, U211", flow(a="", b="x"), {target: '"x"'})
    yield Row("AD-105", flow(a="", b="a", c="a"))
    added = flow(a="", b="a")
    yield Row("AD-106, C100", added, {"spec.flows": ANY}, old=flow(a=""), differs=words)
    yield Row("AD-107", flow(a="", b="a", c="b"))
    yield Row("AD-108", flow(a="", b="", c="a b", d="c"))
    yield Row("AD-109", flow(), {"spec.flows": ANY}, differs=words)
    yield Row("AD-110", flow(a=""))
    self = "spec.flows[0].dependsOn.targets[0]"
    yield Row("AD-111", flow(a="a"), {self: '"a"'})
    circle = flow(a="b", b="a")
    yield Row("U211 a circle", circle, {"spec.flows[0].dependsOn": ANY})
    step = "s" * 30
    long = flow("f" * 40, **{step: ""})
    first = "spec.flows[0].name"
    named = "the name of the step's job"
    yield Row("C103", long, {first: f'"{step}"'}, differs=named)
    yield Row("a step's template", flow("f", {"name": "A"}), {first: '"A"'}, differs=named)
    patch = {"name": "a", "patch": {"jobSpec": {"tasks": [{"replicas": 2}]}}}
    path = "spec.flows[0].patch.jobSpec.tasks[0].name"
    yield Row("a patch of no task", flow("f", patch), {path: ANY}, differs=named)
    probe = {"name": "b", "dependsOn": {"targets": ["a"], "probe": {}}}
    yield Row("probes", flow("f", {"name": "a"}, probe), warned=["job-flow.probes"])
    judged = "All rules for Jobs hold"
    twice = job_template(task("a"), task("a"))
    yield Row("§3.15 a template", twice, {"spec.tasks[1].name": '"a"'}, differs=judged)
    yield Row("a template for later", job_template(queue="closed"), warned=["job.queue-open"])
    later = job_template(task("a"), task("a"), maxRetry=1)
    yield Row("a template that was so", later, old=twice)


def of_crons() -> Iterator[Row]:
    """Cron jobs."""
    yield Row("CJ-01", cron(), warned=["cron-job.unbuilt"])
    for good in ("@daily", "@every 90m", "0 12 * JAN-MAR MON-FRI", "*/5 0-6/2 1,15 * ?"):
        yield Row(f"§3.17 {good}", cron(good))
    for bad in (
        "",
        "0 0 * *",
        "60 * * * *",
        "* * * * 7",
        "* * L * *",
        "TZ=UTC * * * * *",
        "@often",
        "@every x",
        "* * * * * *",
    ):
        yield Row(f"§3.17 {bad!r}", cron(bad), {"spec.schedule": f'"{bad}"'})
    yield Row("§3.17 zone", cron(timeZone="Europe/Berlin"))
    for zone in ("", "Local", "Mars/Olympus", "../etc/passwd", "local"):
        yield Row(f"§3.17 zone {zone!r}", cron(timeZone=zone), {"spec.timeZone": f'"{zone}"'})
    long, made = "c" * 53, "spec.jobTemplate.spec.tasks[0].name"
    yield Row("§3.17 name", cron(name=long), {"metadata.name": f'"{long}"', made: '"task-1"'})
    yield Row("§3.17 name that fits", cron(name="c" * 40))
    path = "spec.jobTemplate.spec.tasks[1].name"
    twice = job(task("a"), task("a"))
    judged = "All rules for Jobs hold"
    yield Row("the job of a cron job", cron(made=twice), {path: '"a"'}, differs=judged)
    yield Row("a cron job that was so", cron("@daily", made=twice), old=cron(made=twice))
    yield Row("31 February", cron("0 0 31 2 *"), warned=["cron-job.never"])
    yield Row("a cron job for later", cron(made=job(queue="closed")), warned=["job.queue-open"])
    yield Row("only warned of", cron(made=twice), extra_warns=True, warned=["job.task-names"])


PARTS: Final = (
    of_queues,
    of_trees,
    of_groups,
    of_hyper_nodes,
    of_flows,
    of_crons,
)

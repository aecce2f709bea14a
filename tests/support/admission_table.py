"""Rows of the table of admission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.webhook.rules.policies import ACTIONS, EVENTS
from tests.support.admission_rows import (
    LONG,
    Row,
    asking,
    bare,
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
    policies,
    queue,
    task,
    template,
)

P: Final = "spec.policies[0]"
T: Final = "spec.tasks[0]"
BOTH_TIERS: Final = {"highestTierAllowed": 1, "highestTierName": "rack"}
TIERS: Final = '{"mode": "hard"'
WEIGHTS: Final = "metadata.annotations[volcano.sh/hierarchy-weights]"
HIERARCHY: Final = "metadata.annotations[volcano.sh/hierarchy]"
LEAST: Final = "metadata.annotations[volcano.sh/jdb-min-available]"
MOST: Final = "metadata.annotations[volcano.sh/jdb-max-unavailable]"
ANY: Final = "…"
"""A value that is too long to write here: something stands there."""
NONE: Final = ""
"""Nothing stands there."""

RESTART: Final = "RestartJob"
X63: Final = "j" * (63 - len("-t-9"))


def counts() -> Iterator[Row]:
    """Numbers of pods and retries."""
    yield Row("AD-01", job())
    yield Row("AD-02, JP-27, C04", job(task("a"), task("a")), {"spec.tasks[1].name": '"a"'})
    yield Row("AD-03, JP-32", job(minAvailable=-1), {"spec.minAvailable": "-1"})
    yield Row("AD-04, JP-33, C04", job(maxRetry=-1), {"spec.maxRetry": "-1"})
    yield Row(
        "AD-05, JP-31, C04",
        job(ttlSecondsAfterFinished=-1),
        {"spec.ttlSecondsAfterFinished": "-1"},
    )
    yield Row(
        "AD-06, JP-34, C04", job(tasks=[]), {"spec.tasks": NONE, "spec.minAvailable": "1"}
    )
    none = job()
    del none["spec"]["tasks"]
    yield Row("AD-06 without the key", none, {"spec.tasks": NONE, "spec.minAvailable": "1"})
    yield Row(
        "AD-07, JP-35, C04",
        job(task(replicas=-1), task("u", 2)),
        {f"{T}.replicas": "-1", f"{T}.minAvailable": "-1"},
    )
    yield Row(
        "AD-08, C04", job(task(minAvailable=-1), minAvailable=1), {f"{T}.minAvailable": "-1"}
    )
    yield Row(
        "AD-09, C04",
        job(task(replicas=3, minAvailable=5)),
        {f"{T}.minAvailable": "5"},
    )
    yield Row("AD-10, U170, JP-29, C04", job(minAvailable=5), {"spec.minAvailable": "5"})
    yield Row("AD-11, JP-36", job(task("Task-1")), {f"{T}.name": '"Task-1"'})
    yield Row("C04 no replicas", job(task("a", 0), task("b", 0, minAvailable=0), task("c")))
    yield Row(
        "C04 minimum by default",
        job(task("a", 3, minAvailable=2), task("b", 2), minAvailable=0),
        stored={"spec.minAvailable": 4},
    )
    yield Row("C04 minSuccess 0", job(minSuccess=0), {"spec.minSuccess": "0"})
    huge = 2**31 - 1
    yield Row(
        "C89",
        job(task("a", huge), task("b", huge), task("c", 3)),
        {"spec.tasks": ANY},
        differs="more pods than",
    )
    yield Row(
        "C07",
        job(task("t", 11), name=X63),
        {f"{T}.name": '"t"'},
        differs="measured with the largest index",
    )
    yield Row("C07 that fits", job(task("t", 10), name=X63))
    yield Row(
        "C07 at scale-up",
        job(task("t", 11), name=X63),
        {f"{T}.name": '"t"'},
        old=job(task("t", 10), name=X63),
        differs="measured with the largest index",
    )
    yield Row("metadata only", job(task("t", 11), name=X63), old=job(task("t", 11), name=X63))
    yield Row(
        "JP name of 64",
        job(task("t"), name="j" * 64),
        {"metadata.name": ANY, f"{T}.name": '"t"'},
    )
    yield Row(
        "C08 with svc",
        job(name="a.b", plugins={"svc": []}),
        {"metadata.name": '"a.b"'},
        differs="a Service may have",
    )
    yield Row(
        "C08 with tensorflow",
        job(name="a.b", plugins={"tensorflow": []}),
        {"metadata.name": '"a.b"'},
        differs="a Service may have",
    )
    yield Row("C08 without svc", job(name="a.b"))
    yield Row("C08 a digit first", job(name="1job", plugins={"svc": []}))
    yield Row("C08 not ASCII", job(name="jö"), {"metadata.name": '"jö"'})
    yield Row(
        "the queue's label",
        job(queue=LONG),
        {"spec.queue": ANY},
        differs="too long for the label",
    )


def of_policies() -> Iterator[Row]:
    """Life-cycle policies."""
    failed = {"event": "PodFailed", "action": RESTART}
    two = "spec.policies[1]"
    yield Row("AD-12, U169, JP-28", policies(failed, failed), {f"{two}.event": '"PodFailed"'})
    yield Row("AD-13, U173, JP-37, C03", policies({**failed, "exitCode": 3}), {P: ANY})
    yield Row("AD-14, U173, JP-38, C03", policies({"action": RESTART}), {P: ANY})
    yield Row(
        "AD-15, U174, JP-40",
        policies({"event": "PodFailed", "action": "InvalidAction"}),
        {f"{P}.action": '"InvalidAction"'},
    )
    yield Row(
        "U174, JP-39",
        policies({"event": "fakeEvent", "action": RESTART}),
        {f"{P}.event": '"fakeEvent"'},
    )
    yield Row(
        "AD-16, U175, JP-41, C03",
        policies({"exitCode": 0, "action": RESTART}),
        {f"{P}.exitCode": "0"},
    )
    code = {"exitCode": 1, "action": RESTART}
    yield Row("AD-17, U175, C03", policies(code, code), {f"{two}.exitCode": "1"})
    yield Row(
        "AD-18, JP-42, C03", policies({"event": "*", "action": RESTART}, failed), {P: ANY}
    )
    yield Row(
        "C03 repeated in events",
        policies(failed, {"events": ["PodEvicted", "PodFailed"], "action": "AbortJob"}),
        {f"{two}.events[1]": '"PodFailed"'},
    )
    yield Row(
        "C03 twice in one",
        policies({"events": ["PodFailed", "PodFailed"], "action": RESTART}),
    )
    yield Row("C03 job and task", job(task(policies=[failed]), task("b"), policies=[failed]))
    for place in ("job", "task"):
        for action in ("CloseQueue", "SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue"):
            given = {"exitCode": 1, "action": action}
            made = policies(given) if place == "job" else job(task(policies=[given]))
            path = P if place == "job" else f"{T}.policies[0]"
            yield Row(
                f"C01 {action} of a {place}",
                made,
                {f"{path}.action": f'"{action}"'},
                differs="An exit-code policy may carry any action",
            )
    for event in ("OutOfSync", "CommandIssued", "PodRunning"):
        given = {"event": event, "action": RESTART}
        yield Row(f"C02 {event}", policies(given), {f"{P}.event": f'"{event}"'})
    others = [event for event in EVENTS if event != "*"]
    for action in ACTIONS:
        for events in (["*"], others):
            every = [{"event": event, "action": action, "timeout": "1s"} for event in events]
            yield Row(f"C02 {action} on {events[0]}", job(policies=every, minSuccess=1))
            of_task = job(task(policies=every), policies=[])
            yield Row(f"C02 {action} on {events[0]} of a task", of_task)
    yield Row(
        "a negative timeout",
        policies({"event": "PodPending", "timeout": "-1s", "action": RESTART}),
        {f"{P}.timeout": '"-1s"'},
        differs="A negative timeout",
    )
    pending = {"event": "PodPending", "action": RESTART}
    yield Row("C24", policies(pending), warned=["advice.pending"])
    code = {"exitCode": 42, "action": "AbortJob"}
    yield Row("C23", policies(failed, code), warned=["advice.unreachable"])
    yield Row("C23 reversed", policies(code, failed))
    yield Row(
        "§5 hidden", job(task(policies=[failed]), policies=[failed]), warned=["advice.hidden"]
    )
    given = {"event": "PodFailed", "action": "RestartPartition"}
    yield Row("§5 no partitions", policies(given), warned=["advice.partitions"])
    empty = task("b", 0, policies=[failed])
    yield Row("§5 no pods", job(task(), empty), warned=["advice.empty-task"])
    yield Row("§5 minSuccess", job(minSuccess=2), warned=["advice.min-success"])


def of_volumes() -> Iterator[Row]:
    """Volumes of jobs."""
    one, two = "spec.volumes[0]", "spec.volumes[1]"
    yield Row(
        "AD-19, U177, JP-43",
        job(volumes=[{"mountPath": "", "volumeClaimName": "a"}]),
        {f"{one}.mountPath": '""'},
    )
    var = {"mountPath": "/var", "volumeClaimName": "a"}
    yield Row("AD-20, U177, JP-44", job(volumes=[var, var]), {f"{two}.mountPath": '"/var"'})
    none = {"mountPath": "/a"}
    words = "neither a claim nor a claim's name"
    yield Row(
        "AD-21, U177, JP-45", job(volumes=[none]), warned=["advice.empty-volume"], differs=words
    )
    yield Row(
        "AD-21 as Volcano",
        job(volumes=[none]),
        {one: ANY},
        compat=frozenset({"volume-without-claim"}),
        differs=words,
    )
    yield Row(
        "§3.8 name and claim",
        job(volumes=[{**var, "volumeClaim": {}}]),
        {f"{one}.volumeClaimName": '"a"'},
    )
    yield Row(
        "§3.8 claim name",
        job(volumes=[{**var, "volumeClaimName": "A"}]),
        {f"{one}.volumeClaimName": '"A"'},
    )
    mounting = {
        "name": "c",
        "image": "busybox",
        "volumeMounts": [{"name": "v", "mountPath": "/var"}],
    }
    own = template(containers=[mounting], volumes=[{"name": "v", "emptyDir": {}}])
    yield Row(
        "one path for two volumes",
        job(task(template=own), volumes=[var]),
        {f"{T}.template.spec.containers[0].volumeMounts[0].mountPath": '"/var"'},
        differs="where the job mounts one",
    )


def of_order() -> Iterator[Row]:
    """Order, partitions and topology."""
    yield Row("JP-30, U171", job(plugins={"big_plugin": []}), {"spec.plugins.big_plugin": NONE})
    yield Row("AD-22, U179", job(task("t1", dependsOn={"name": ["t2"]}), task("t2")))
    circle = [task("t1", dependsOn={"name": ["t2"]}), task("t2", dependsOn={"name": ["t1"]})]
    yield Row("U179 a circle", job(*circle), {f"{T}.dependsOn": ANY})
    for name in ("t1", "nope"):
        path = f"{T}.dependsOn.name[0]"
        waits = task("t1", dependsOn={"name": [name]})
        yield Row(f"§3.10 {name}", job(waits), {path: f'"{name}"'})
    twice = task("t1", dependsOn={"name": ["t2", "t2"]})
    yield Row("§3.10 twice", job(twice, task("t2")), {f"{T}.dependsOn.name[1]": '"t2"'})
    yield Row("U181", job(networkTopology=BOTH_TIERS), {"spec.networkTopology": ANY})
    split = {"totalPartitions": 1, "partitionSize": 1, "networkTopology": BOTH_TIERS}
    path = f"{T}.partitionPolicy.networkTopology"
    yield Row("U181 of a partition", job(task(partitionPolicy=split)), {path: ANY})
    split = {"totalPartitions": 2, "partitionSize": 2}
    yield Row("§3.7", job(task("t", 5, partitionPolicy=split)), {f"{T}.partitionPolicy": ANY})
    least = task("t", 4, minAvailable=3, partitionPolicy={**split, "minPartitions": 1})
    yield Row("§3.7 least", job(least), {f"{T}.partitionPolicy.minPartitions": "1"})


def of_plugins() -> Iterator[Row]:
    """Plugins of jobs."""
    flags = ["--master=task-1", "--worker=task-1"]
    yield Row("U182", job(plugins={"mpi": ["--master=task-1"]}))
    yield Row("U182 no master", job(plugins={"mpi": []}), {"spec.plugins.mpi": NONE})
    master = task("master")
    yield Row("C11", job(master, task("worker", 0), plugins={"mpi": []}))
    yield Row(
        "C11 no master",
        job(task("worker", 0), task(), plugins={"mpi": []}),
        {"spec.plugins.mpi": NONE},
    )
    for name in ("tensorflow", "pytorch", "ray"):
        made = job(plugins={name: []})
        yield Row(f"AD-32..34 {name}", made, stored={"spec.plugins": {name: [], "svc": []}})
    every = {"mpi": flags, "svc": [], "ssh": []}
    yield Row("AD-33, AD-35", job(plugins={"mpi": flags}), stored={"spec.plugins": every})
    kept = {"tensorflow": [], "svc": ["--enable-networking"]}
    yield Row("AD-36", job(plugins=kept), stored={"spec.plugins": kept})


def of_templates() -> Iterator[Row]:
    """Pod templates."""
    asked = f"{T}.template.spec.containers[0].resources.requests"
    for name in ("cpu", "memory"):
        made = job(task(template=asking(requests={name: "-1"})))
        yield Row(f"JP-20/21 {name}", made, {f"{asked}.{name}": '"-1"'})
    privileged = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    yield Row("JP-50, U167", job(task("t", 2, template=template(containers=[privileged]))))
    yield Row(
        "U167 of the pod",
        job(task(template=asking(pod={"requests": {"cpu": "4"}}, requests={"cpu": "2"}))),
    )
    whole = f"{T}.template.spec.resources.requests.cpu"
    less = asking(pod={"requests": {"cpu": "2"}}, requests={"cpu": "4"})
    yield Row("U183", job(task(template=less)), {whole: '"2"'})
    more = asking(pod={"requests": {"cpu": "6"}, "limits": {"cpu": "4"}})
    yield Row("U183 above the limit", job(task(template=more)), {whole: '"6"'})
    half = task(template=asking(requests={"cpu": "1500m"}), topologyPolicy="restricted")
    yield Row("§3.6", job(half), {f"{asked}.cpu": '"1500m"'})
    vast = job(task(template=asking(requests={"cpu": "17"})))
    yield Row("§5 too large", vast, warned=["advice.too-large"])
    wide = task("t", 3, template=asking(requests={"cpu": "1"}))
    yield Row(
        "§5 too much",
        job(wide, queue="small", minAvailable=3),
        warned=["advice.too-much"],
    )
    yield Row("§5 unbuilt", job(networkTopology={}), warned=["advice.unbuilt"])


def of_defaults() -> Iterator[Row]:
    """What is filled in."""
    yield Row(
        "AD-27..29, JP-19",
        bare(task(), maxRetry=0),
        stored={"spec.queue": "default", "spec.schedulerName": "volcano", "spec.maxRetry": 3},
    )
    yield Row("§0 an empty queue", job(queue=""), stored={"spec.queue": "default"})
    yield Row(
        "§0 an empty priority", job(priorityClassName=""), {"spec.priorityClassName": '""'}
    )
    yield Row(
        "JP-26, U186",
        bare(task(None), task(None)),
        stored={"spec.tasks[0].name": "default0", "spec.tasks[1].name": "default1"},
    )
    yield Row("AD-30", bare(task("a", 2), task("b", 3)), stored={"spec.minAvailable": 5})
    yield Row(
        "AD-31",
        bare(task("a", 2, minAvailable=1), task("b", 3)),
        stored={"spec.minAvailable": 4},
    )
    yield Row(
        "AD-37",
        job(
            task("t", 3, minAvailable=2, maxRetry=5),
            minAvailable=2,
            queue="open",
            schedulerName="custom-sched",
            maxRetry=10,
        ),
        stored={
            "spec.minAvailable": 2,
            "spec.queue": "open",
            "spec.schedulerName": "custom-sched",
            "spec.maxRetry": 10,
            f"{T}.name": "t",
            f"{T}.minAvailable": 2,
            f"{T}.maxRetry": 5,
        },
    )
    split = {"totalPartitions": 3, "partitionSize": 3, "minPartitions": 2}
    yield Row(
        "U186 partitions",
        bare(task("t", 9, partitionPolicy=split)),
        stored={f"{T}.minAvailable": 6, f"{T}.maxRetry": 3},
    )
    split = {"totalPartitions": 2, "partitionSize": 2}
    made = bare(task("t", 4, partitionPolicy=split))
    yield Row("U186 no least", made, stored={f"{T}.minAvailable": 4})
    yield Row("U186 plain", bare(task("t", 5)), stored={f"{T}.minAvailable": 5})
    yield Row(
        "§3.2 host network",
        job(task(template=template(hostNetwork=True))),
        stored={f"{T}.template.spec.dnsPolicy": "ClusterFirstWithHostNet"},
    )


def of_job_queues() -> Iterator[Row]:
    """The queue of a job."""
    for source, name in (
        ("JP-47, U178, C10", "nope"),
        ("JP-48, U178, C10", "root"),
        ("JP-49, U178, C10", "q1"),
        ("C107", "closed"),
        ("§3.3 closing", "closing"),
        ("§3.3 unknown", "unknown"),
    ):
        yield Row(source, job(queue=name), {"spec.queue": f'"{name}"'})
    yield Row("U178 a leaf", job(queue="q11"))


def of_updates() -> Iterator[Row]:
    """What an update may change."""
    old = job(task("t", 5))
    yield Row("AD-23, U185, C05", job(task("t", 5), minAvailable=3), old=old)
    yield Row(
        "AD-24, U185, C05",
        job(task("t", 5), minAvailable=10),
        {"spec.minAvailable": "10"},
        old=old,
    )
    added = job(task("t", 5), task("u"))
    yield Row("AD-25, U185, C05", added, {"spec.tasks": ANY}, old=old)
    moved = job(task("t", 5), queue="open")
    yield Row("AD-26, U185, C05", moved, {"spec.queue": '"open"'}, old=old)
    yield Row("U185 more", job(task("t", 6)), old=old)
    yield Row("U185 fewer", job(task("t", 4)), old=old)
    least = job(task("t", 4, minAvailable=5))
    yield Row("U185 too few", least, {f"{T}.minAvailable": "5"}, old=old)
    other = job(task("t", 5, template=template(subdomain="x")))
    yield Row("U185 a template", other, {f"{T}.template": ANY}, old=old)
    yield Row("C05 priority", job(task("t", 5), priorityClassName="high"), old=old)
    yield Row(
        "C05 #1706",
        bare(task("t", 2, template=template(hostNetwork=True))),
        old=job(
            task(
                "t",
                1,
                minAvailable=1,
                template=template(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet"),
            ),
            policies=[],
            maxRetry=3,
        ),
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
    yield Row("CJ-01", cron())
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


ROWS: Final = tuple(
    row
    for part in (
        counts,
        of_policies,
        of_volumes,
        of_order,
        of_plugins,
        of_templates,
        of_defaults,
        of_job_queues,
        of_updates,
        of_queues,
        of_trees,
        of_groups,
        of_hyper_nodes,
        of_flows,
        of_crons,
    )
    for row in part()
)
SOURCES: Final[Mapping[str, Any]] = {row.source: row for row in ROWS}

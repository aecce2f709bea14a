"""Rows of the table of admission: jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from services.webhook.rules.policies import ACTIONS, EVENTS
from tests.support.admission_rows import (
    ANY,
    BOTH_TIERS,
    LONG,
    NONE,
    RESTART,
    X63,
    P,
    Row,
    T,
    asking,
    bare,
    job,
    policies,
    task,
    template,
)


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
    misspelt = {"name": "c", "image": "i", "comand": ["sh"]}
    yield Row(
        "§0 an unknown field",
        job(task(template=template(containers=[misspelt], host="x"))),
        {
            f"{T}.template.spec.containers[0].comand": ANY,
            f"{T}.template.spec.host": '"x"',
        },
        differs="An unknown field is dropped",
    )
    yield Row(
        "§0 an unknown field, warned of",
        job(task(template=template(containers=[misspelt]))),
        warned=["job.known-fields"],
        extra_warns=True,
    )
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


PARTS: Final = (
    counts,
    of_policies,
    of_volumes,
    of_order,
    of_plugins,
    of_templates,
    of_defaults,
    of_job_queues,
    of_updates,
)

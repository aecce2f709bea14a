"""The scheduling core: one world as arrays, one session over it. Pure: no clock, no I/O.

The shell feeds events into one persistent ``cluster.Cluster`` and asks for decisions::

    cluster.upsert_node(node)            cluster.remove_node(name)
    cluster.upsert_pod(pod)              cluster.remove_pod(uid)
    cluster.upsert_group(group)          cluster.remove_group(uid)
    cluster.upsert_queue(queue)          cluster.remove_queue(name)
    cluster.upsert_priority_class(it)    cluster.remove_priority_class(name)
    cluster.assume(pod_uid, node)        a bind recorded elsewhere that no event has confirmed
    cluster.forget(pod_uid)              a bind that failed, or was never sent
    cluster.follow()                     leadership lost: believe nothing but events again
    cluster.adopt(framework)             new configuration; a session does it by itself

    decisions = session.Session(cluster, framework, now, uid=…).run()

Every pod in ``decisions.binds`` is assumed on its node when ``run`` returns; who does not
carry a bind out calls ``forget``. ``decisions.again_in`` says when another session may
decide more though nothing happens until then. All of it runs on one thread.
"""

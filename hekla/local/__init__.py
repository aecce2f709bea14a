"""The local cluster, a stand-in for Kubernetes on one machine, and ``hekla up``.

Each package is one idea and knows only those below its line. Who reads one for the first time
begins with ``kinds``, then ``verbs``, then ``serving``:

* ``stack``: what ``hekla up`` and ``down`` do; ``supervisor`` keeps its processes running.
* ``server`` and ``cluster``: the local cluster put together, as one process.
* ``runtimes``: how pods run; ``controllers``: what else acts on its own.
* ``serving``: HTTP, from request to answer; ``nodes``: the agents that take pods in.
* ``webhooks``: who is asked before a write; ``discovery``: what the API says of itself.
* ``verbs``: create, read, update, delete; ``answers``: objects as clients get them.
* ``storage``: what is kept; ``rules``: what each kind allows; ``patches``: changes of objects.
* ``kinds``: the table of what is served; ``schemas``: what defined kinds must look like.
"""

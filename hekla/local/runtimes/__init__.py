"""How pods run: as processes of this machine, or only in pretence.

``process_runtime`` runs a pod (``pod_run``) and its containers (``container_run``), each in a
``sandbox``, with its ``environment``, its ``volumes`` and the names of its ``peers``.
``launches`` starts a container at most once and finds it again, by what tells ``processes``
apart; ``sweeps`` ends what is left, ``strays`` finds it; ``logs`` reads what was written.
``simulate_runtime`` does none of that.
"""

"""The nodes, and what they have in common however pods run.

``presence`` keeps their objects and leases, ``kubelet`` is the agent of all of them, which a
runtime does the work for; ``pod_status`` is what it reports, ``addresses`` what pods get.
"""

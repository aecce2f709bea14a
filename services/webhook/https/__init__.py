"""Admission over HTTPS, as API servers ask for it.

``inventory`` has the paths, ``envelope`` reads and writes AdmissionReviews, ``judge`` leads
them to the rules, ``app`` answers requests and ``server`` runs it with TLS in a thread of its
own. ``authority`` makes certificates, ``keeping`` says where they are kept, ``registration``
tells API servers whom to call, and ``upkeep`` keeps all of it fresh.
"""

"""Kubernetes, and the only code that talks to an API server.

``client`` is what others use, with ``resources`` (kinds and paths), ``requests`` (what is
asked and answered), ``events`` (what a watch delivers) and ``fence`` (what a leader shares
with its I/O process). Behind it ``link`` and ``process`` carry the messages of ``wire`` to a
``service``, which runs the ``engine`` (writes, settled if they are not answered),
``reflector`` (watches) and logs over one ``session``. ``connect`` asks the official package
where the server is.

Nothing of Hekla's rules belongs here: no jobs, queues or pod groups, only objects.
"""

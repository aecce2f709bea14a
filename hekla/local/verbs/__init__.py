"""What can be done to objects of any kind, whoever asks: HTTP, nodes or controllers.

``objects`` has the verbs; ``binding`` and ``eviction`` are those of pods. A write is told in
``steps``, so that others may have their say. ``bodies`` and ``drafts`` are what clients send
and what becomes of it, ``deletions`` how a delete goes, ``admission`` what a create takes from
other objects.
"""

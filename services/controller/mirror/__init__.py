"""The controller's side of the mirror: its kinds as rows, and how they are kept.

``jobs`` and ``groups`` say what is done to their rows (``hekla.kube.mirror`` says when),
``owning`` gives jobs of the first door their custom resource before their pods, ``running``
puts the parts together.
"""

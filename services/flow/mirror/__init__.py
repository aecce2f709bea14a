"""The flow service's side of the mirror: flows and templates as rows, and how they are kept.

``flows`` and ``templates`` say what is done to their rows (``hekla.kube.mirror`` says when),
``reading`` takes custom resources for what they are, ``running`` puts the parts together.
"""

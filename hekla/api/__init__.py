"""The kinds of the API as strict models: one definition of every field, default and bound.

Reading has two steps. The first checks shape and types and fills what a custom resource
definition would (``decode.read``, ``convert.to_model``); the second checks bounds
(``bounds.violations``) and comes after admission has filled in its own defaults, which may
repair what the second would refuse.
"""

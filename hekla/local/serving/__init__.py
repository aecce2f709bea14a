"""The API over HTTP, from a request to its answer.

``app`` takes requests, ``routing`` finds what they mean, ``accepting`` the form of the answer,
``strictness`` what becomes of unknown fields. ``streams`` sends answers, ``watches`` are those
that go on. ``faults`` misbehaves on purpose, ``accesses`` notes who asked for what.
"""

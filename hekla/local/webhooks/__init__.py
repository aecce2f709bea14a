"""Admission webhooks, called over HTTPS as a Kubernetes API server calls them.

``hooks`` says which webhooks a write concerns, ``reviews`` writes questions and reads answers
(all pure); ``caller`` asks over the network, and ``dispatch`` follows the registrations and
asks one webhook after the other.
"""

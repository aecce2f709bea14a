"""What is admitted, and how it is completed: pure, one module a subject.

``admission.admit`` is the only entry; every door of the webhook leads to it.
"""

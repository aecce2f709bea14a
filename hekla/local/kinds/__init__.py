"""The kinds that the API serves, and what all objects have whatever their kind.

``registry`` is the table that everything generic reads; ``metadata`` is what the server does to
``metadata``, ``errors`` how it refuses, ``jsonpath`` how columns of defined kinds are read.
"""

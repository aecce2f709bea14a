"""What CustomResourceDefinitions say of their objects. Pure, and knows of no kinds.

``structural`` makes a schema ready for use, ``checks`` are what it asks of single values, and
``schema_rules`` is what a schema itself must be.
"""

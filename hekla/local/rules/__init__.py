"""What is special about each kind: defaults, checks, what may change. Pure.

``table`` has the rules of every kind, by its name; the other modules are what they are made of.
"""

"""The ``hekla`` command: a client of the services, and the keeper of the local stack.

``main`` is the command, ``errors`` how things end badly, ``output`` how objects are printed;
every noun has a module of its own. It sees only what a user of the SDK sees.
"""

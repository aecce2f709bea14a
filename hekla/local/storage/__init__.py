"""What is kept: every object in memory, and a journal that outlives the process.

``memory`` is what everybody reads and writes, ``journal`` makes it last, ``selection`` says
which objects a list or a watch asks for.
"""

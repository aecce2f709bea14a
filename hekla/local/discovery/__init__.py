"""What the API says of itself: ``groups`` and their kinds, and their fields (``openapi``).

``core_fields`` are the fields of built-in kinds, from a file that ``make fields`` draws.
"""

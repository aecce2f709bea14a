"""Changes of objects that are sent as patches. Pure.

``standard`` are those of RFC 7386 and RFC 6902, ``strategic`` those of Kubernetes, which merge
lists by what ``merge_keys`` says of each kind.
"""

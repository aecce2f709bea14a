"""What acts on its own in a cluster, as the controllers of Kubernetes do.

``collector`` deletes what nobody owns, ``namespaces`` what is in one that goes, ``expiry`` what
is too old; ``claims`` binds volumes; ``definitions`` serves the kinds that are defined,
``our_kinds`` defines ours.
"""

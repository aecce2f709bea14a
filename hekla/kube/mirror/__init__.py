"""The mirror between custom resources and whatever keeps the objects they stand for.

An ``Engine`` keeps one kind: it watches custom resources, is told which rows changed
(``Engine.mark``), and brings both sides together, object by object, whatever it missed. All
behaviour is in ``deciding``, a pure function of the custom resource and the row, or, for kinds
that begin as custom resources wherever they can, in ``following``; ``rows`` says what a service
brings along for a kind. Around them: ``taking`` (rows are written), ``writing`` (custom
resources are), ``custom`` (as they are read), ``bodies`` (as they are written), ``merging``
(patches), ``board`` (what an engine keeps in mind: ``marks``, what is due, ``showing``,
statuses at their pace, and ``known``, what the cluster has), ``complaints`` (what is said on an
object that cannot be taken), ``door`` (calls that write custom resources), ``standing`` (who
mirrors, and when) and ``discovery`` (whether a kind is there at all).

Nothing of a kind's own rules is here, nor anything of Postgres: rows are passed in.
"""

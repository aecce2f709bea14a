"""The mirror between custom resources and whatever keeps the objects they stand for.

An ``Engine`` keeps one kind: it watches custom resources, is told which rows changed
(``Engine.mark``), and brings both sides together, object by object, whatever it missed. All
behaviour is in ``deciding``, a pure function of the custom resource and the row; ``rows`` says
what a service brings along for a kind. Around them: ``custom`` (custom resources as they are
read), ``bodies`` (as they are written), ``merging`` (patches), ``marks`` (what is due),
``showing`` (statuses, at their pace), ``known`` (what the cluster has), ``complaints`` (what is
said on an object that cannot be taken), ``standing`` (who mirrors, and when) and
``discovery`` (whether a kind is there at all).

Nothing of a kind's own rules is here, nor anything of Postgres: rows are passed in.
"""

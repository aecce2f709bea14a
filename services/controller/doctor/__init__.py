"""``python -m services.controller doctor``: what is wrong, and what to do about it.

``measuring`` looks and changes nothing; ``judging`` says what it means, and is pure. Every
finding that is not well says what to do.
"""

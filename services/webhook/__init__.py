"""Admits: fills in defaults and says no, early, with the field and the reason."""

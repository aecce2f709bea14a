"""What every table is made of."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Final

from sqlalchemy import DateTime, MetaData, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import UserDefinedType

NAMING: Final = {
    "ix": "%(table_name)s_%(column_0_name)s_idx",
    "uq": "%(table_name)s_%(column_0_name)s_key",
    "ck": "%(table_name)s_%(constraint_name)s_check",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "pk": "%(table_name)s_pkey",
}

JsonObject = dict[str, Any]


class Xid8(UserDefinedType[int]):
    """Postgres' 64-bit transaction id, which never wraps."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Name the type in DDL."""
        return "xid8"


# So that reflection, which compares the migrated schema with this one, knows the type too.
ischema_names["xid8"] = Xid8


class Base(DeclarativeBase):
    """Parent of every row class."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: DateTime(timezone=True),
        JsonObject: JSONB(none_as_null=True),
    }


def listed(column: str, values: type[StrEnum]) -> str:
    """The condition that a column has one of these values."""
    names = ", ".join(f"'{value}'" for value in values)
    return f"{column} in ({names})"


EMPTY_OBJECT: Final = text("'{}'::jsonb")
NOW: Final = func.clock_timestamp()

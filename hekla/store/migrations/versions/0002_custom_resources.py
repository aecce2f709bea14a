"""Find jobs and pod groups that have a custom resource."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

FOLLOWED = sa.text("cr_uid is not null")


def upgrade() -> None:
    """Index them; there are few beside the backlog, which has none."""
    op.create_index("job_custom_idx", "job", ["cr_uid"], postgresql_where=FOLLOWED)
    op.create_index("pod_group_custom_idx", "pod_group", ["cr_uid"], postgresql_where=FOLLOWED)

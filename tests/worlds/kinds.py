"""The kinds of objects in a random world: all that are read by default, and JobSets."""

from app.job_kinds import shipped
from app.store.kinds import kinds_with

ROWS = shipped("JobSet")
KINDS = kinds_with(ROWS)
JOB_SETS = next(kind for kind in KINDS if kind.name == "JobSet")

"""``quotaward check``: finds what would go wrong before it does."""

from app.checks.finding import Finding as Finding
from app.checks.folder import manifests as manifests
from app.checks.scheduler import scheduler_configuration as scheduler_configuration

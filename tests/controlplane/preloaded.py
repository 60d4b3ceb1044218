"""What a process has loaded from which Quotaward is forked: all that ``serve`` imports, and its templates."""

import gc

import uvloop

import app.access.reviews
import app.actuators.kubernetes
import app.cli
import app.kube.lease
import app.main
import app.sources.kubernetes
from app.web.rendering import environment

__all__ = ["app", "uvloop"]

environment()
gc.collect()
gc.freeze()  # so that no fork looks through it, and has to copy it for that

"""Metrics: names, labels and buckets in one place. Labels are bounded: never the name of a pod."""

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()

REQUESTS = Counter(
    "quotaward_extender_requests", "Requests of kube-scheduler, by verb and how they were answered.", ["verb", "result"]
)
DURATION = Histogram(
    "quotaward_extender_request_duration_seconds",
    "Time from the last byte of a request to its answer, by verb.",
    ["verb"],
    buckets=(0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0),
)
LAST_REQUEST = Gauge(
    "quotaward_extender_last_request_timestamp_seconds", "When kube-scheduler last called, by verb.", ["verb"]
)
REFUSALS = Counter("quotaward_refusals", "Pods refused, by rule; asked for again they count again.", ["rule"])
PENDING = Gauge(
    "quotaward_pending_pods",
    "Pending pods, by the rule that last refused them; no-room, other (another reason), or untried by any scheduler.",
    ["rule"],
)
ALLOCATABLE = Gauge("quotaward_cluster_allocatable", "What all nodes together have for pods.", ["resource"])
REQUESTED = Gauge("quotaward_cluster_requested", "What the pods on all nodes request.", ["resource"])
OBJECTS = Gauge("quotaward_store_objects", "Objects in the store, by kind.", ["kind"])
SYNCED = Gauge("quotaward_store_synced", "1 when the picture of the cluster is complete and fresh.")
LOG_LOST = Counter("quotaward_log_lines_lost", "Lines of the log that could not be written.")
UNUSABLE = Counter("quotaward_store_unusable_objects", "Objects that could not be used, by kind.", ["kind"])
DEFINITION_GONE = Gauge(
    "quotaward_store_definition_gone", "1 while the definition of a kind that was there is gone.", ["kind"]
)
WATCH_LAG = Gauge(
    "quotaward_watch_lag_seconds", "Seconds without contact to the source of a kind; 0 while connected.", ["kind"]
)
WATCH_RESTARTS = Counter("quotaward_watch_restarts", "Watches that ended, by kind and reason.", ["kind", "reason"])
WATCH_EVENTS = Counter("quotaward_watch_events", "Watch events taken in, by kind.", ["kind"])
MANIFEST_ERRORS = Gauge("quotaward_manifest_errors", "Manifest files or documents that could not be used.")
OVERDUE = Gauge(
    "quotaward_overdue_pods",
    "Pods that should be gone, on nodes that are gone or unreachable: they hold no quota any more. By namespace.",
    ["namespace"],
)
UNJUDGED = Gauge(
    "quotaward_unjudged_pods",
    "Waiting pods that have more constraints than are judged, alone or with others of their namespace. By namespace.",
    ["namespace"],
)
GRANTS = Gauge("quotaward_grants", "Pods admitted and not bound yet.")
GATED = Gauge("quotaward_gated_pods", "Pods that wait at their gates.")
LET_OUT = Gauge("quotaward_let_out_pods", "Pods whose gate was opened, that count as admitted and are not bound yet.")
GATES_OPENED = Counter("quotaward_gates_opened", "Attempts to open a gate, by outcome.", ["outcome"])
WAKE_UPS = Counter("quotaward_wake_ups", "Refused pods that were woken, by outcome.", ["outcome"])
EVICTIONS = Counter("quotaward_evictions", "Evictions asked for, by reason and outcome.", ["reason", "outcome"])
JOBS_FAILED = Counter(
    "quotaward_jobs_failed_by_eviction", "Jobs (batch/v1) that fail by an eviction, as nobody else could be evicted."
)
RECLAIMS = Counter("quotaward_reclaims", "Plans that ended, by outcome.", ["outcome"])
RECLAIM_FAILURES = Counter("quotaward_reclaim_failures", "Plans that failed, by reason.", ["reason"])
IN_VAIN = Counter(
    "quotaward_evictions_in_vain",
    "Pods that went for a pod of this namespace which went away, or was not bound all the same.",
    ["namespace"],
)
RECLAIM_WITHOUT_PLAN = Counter(
    "quotaward_reclaim_without_plan", "Waiting pods that nobody was evicted for when looked at, by reason.", ["reason"]
)
RESERVATIONS = Gauge("quotaward_reservations", "Reservations in force, by reason.", ["reason"])
NOTHING_RESERVED = Counter(
    "quotaward_nothing_reserved", "Jobs that starve and that no node could be reserved for, by reason.", ["reason"]
)
LEADER = Gauge("quotaward_leader", "1 while this replica's controllers act.")
OBSERVING = Gauge("quotaward_observing", "1 in observe mode: nobody is refused or evicted.")
STATUS_WRITES = Counter("quotaward_status_writes", "Writes of a quota's status, by outcome.", ["outcome"])
LIMIT_WRITES = Counter(
    "quotaward_resource_quota_writes", "Resource quotas of queues' namespaces written, by outcome.", ["outcome"]
)
QUESTIONS_UNDER_WAY = Gauge("quotaward_questions_under_way", "Questions of people and scripts that have a seat.")
QUESTIONS_WAITING = Gauge("quotaward_questions_waiting", "Questions of people and scripts that wait for a seat.")
QUESTIONS_REFUSED = Counter(
    "quotaward_questions_refused", "Questions that were refused, as too many of the same asker were not answered yet."
)
BODIES_REFUSED = Counter(
    "quotaward_bodies_refused", "Bodies of requests beyond any real one: too-large, too-wide or too-deep.", ["reason"]
)
CERTIFICATES_USABLE = Gauge("quotaward_certificates_usable", "1 while the files of the certificates can be loaded.")
REVIEWS = Counter(
    "quotaward_access_reviews",
    "Reviews of tokens and rights asked of the API server, by kind and outcome.",
    ["kind", "outcome"],
)

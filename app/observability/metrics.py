"""Metrics: names, labels and buckets in one place. Labels are bounded: never the name of a pod."""

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()

WAITS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600)
"""Upper bounds in seconds of histograms of how long somebody waits."""
REQUESTS = Counter("quotaward_extender_requests", "Requests of kube-scheduler, by verb and result.", ["verb", "result"])
DURATION = Histogram(
    "quotaward_extender_request_duration_seconds",
    "Time from the last byte of a request to the reply, by verb.",
    ["verb"],
    buckets=(0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0),
)
LAST_REQUEST = Gauge(
    "quotaward_extender_last_request_timestamp_seconds",
    "Time of the last request of kube-scheduler, by verb.",
    ["verb"],
)
REFUSALS = Counter("quotaward_refusals", "Refusals of pods, by rule. Each attempt of a pod counts.", ["rule"])
PENDING = Gauge(
    "quotaward_pending_pods",
    "Pending pods, by the rule that last refused them, or no-room, other (another reason), untried (by any scheduler).",
    ["rule"],
)
ALLOCATABLE = Gauge("quotaward_cluster_allocatable", "Allocatable resources of all nodes together.", ["resource"])
REQUESTED = Gauge("quotaward_cluster_requested", "Requests of the pods on all nodes together.", ["resource"])
OBJECTS = Gauge("quotaward_store_objects", "Objects in the store, by kind.", ["kind"])
SYNCED = Gauge("quotaward_store_synced", "1 while the view of the cluster is complete and fresh.")
LOG_LOST = Counter("quotaward_log_lines_lost", "Log lines that could not be written.")
UNUSABLE = Counter("quotaward_store_unusable_objects", "Objects that could not be used, by kind.", ["kind"])
DEFINITION_GONE = Gauge(
    "quotaward_store_definition_gone", "1 after the definition of a kind was deleted, until it is back.", ["kind"]
)
WATCH_LAG = Gauge(
    "quotaward_watch_lag_seconds",
    "Seconds since the last contact with the source of a kind; 0 while connected.",
    ["kind"],
)
WATCH_RESTARTS = Counter(
    "quotaward_watch_restarts",
    "Watches that ended and lists that were not used, by kind and reason.",
    ["kind", "reason"],
)
WATCH_EVENTS = Counter("quotaward_watch_events", "Watch events processed, by kind.", ["kind"])
MANIFEST_ERRORS = Gauge("quotaward_manifest_errors", "Manifest files or documents that could not be used.")
OVERDUE = Gauge(
    "quotaward_overdue_pods",
    "Pods past their deletion on lost or unreachable nodes, which no longer count in a quota, by namespace.",
    ["namespace"],
)
UNJUDGED = Gauge(
    "quotaward_unjudged_pods",
    "Waiting pods with more constraints than are judged, alone or with others of their namespace, by namespace.",
    ["namespace"],
)
GRANTS = Gauge("quotaward_grants", "Pods that are admitted and not bound yet.")
GATED = Gauge("quotaward_gated_pods", "Pods that wait at gates.")
UNGATED = Gauge("quotaward_let_out_pods", "Admitted pods whose gate was opened, and that are not bound yet.")
GATES_OPENED = Counter("quotaward_gates_opened", "Attempts to open a gate, by outcome.", ["outcome"])
JOBS_STARTED = Counter("quotaward_jobs_started", "Attempts to start a Job that waited, by outcome.", ["outcome"])
JOBS_TAKEN_BACK = Counter("quotaward_jobs_taken_back", "Jobs that were taken back as a whole, by means.", ["means"])
PENDING_JOBS = Gauge(
    "quotaward_pending_jobs", "Jobs that wait as a whole, by queue and namespace.", ["queue", "namespace"]
)
ADMISSION_WAIT = Histogram(
    "quotaward_admission_wait_seconds",
    "Time for which a Job has waited as a whole, from its creation or last suspension to its start, by queue.",
    ["queue"],
    buckets=WAITS,
)
EXPECTED_START_ERROR = Histogram(
    "quotaward_expected_start_error_seconds",
    "Time between the start that was first expected of a waiting pod or Job and its real one, by basis.",
    ["basis"],
    buckets=WAITS,
)
WAKE_UPS = Counter("quotaward_wake_ups", "Attempts to wake a refused pod, by outcome.", ["outcome"])
EVICTIONS = Counter("quotaward_evictions", "Attempts to evict a pod, by reason and outcome.", ["reason", "outcome"])
QUEUE_EVICTIONS = Counter(
    "quotaward_queue_evictions",
    "Pods that were evicted, by queue (empty: no queue) and reason; job-taken-back: with their Job.",
    ["queue", "reason"],
)
JOBS_FAILED = Counter(
    "quotaward_jobs_failed_by_eviction",
    "Jobs (batch/v1) that failed because a pod was evicted, as no other pod would do.",
)
RECLAIMS = Counter("quotaward_reclaims", "Plans that ended, by outcome.", ["outcome"])
RECLAIM_FAILURES = Counter("quotaward_reclaim_failures", "Plans that failed, by reason.", ["reason"])
IN_VAIN = Counter(
    "quotaward_evictions_in_vain",
    "Pods evicted for a pod of this namespace that was not bound in time, or was deleted before.",
    ["namespace"],
)
RECLAIM_WITHOUT_PLAN = Counter(
    "quotaward_reclaim_without_plan",
    "Attempts to plan evictions for a waiting pod that found no victims, by reason.",
    ["reason"],
)
RESERVATIONS = Gauge("quotaward_reservations", "Reservations in force, by reason.", ["reason"])
NOTHING_RESERVED = Counter(
    "quotaward_nothing_reserved", "Starving jobs for which no node could be reserved, by reason.", ["reason"]
)
PROMISES = Counter(
    "quotaward_promises",
    "Promised starts of jobs with reserved nodes that ended or were moved, by outcome.",
    ["outcome"],
)
PROMISE_LATE = Histogram(
    "quotaward_promise_late_seconds",
    "Seconds by which a job with a promised start started after it; 0 if in time.",
    buckets=(0, 5, 30, 120, 600, 1800, 3600, 4 * 3600, 24 * 3600),
)
LEADER = Gauge("quotaward_leader", "1 while this replica leads, so that its controllers act.")
OBSERVING = Gauge("quotaward_observing", "1 in observe mode: nobody is refused or evicted.")
STATUS_WRITES = Counter(
    "quotaward_status_writes",
    "Writes of the status of quotas and queues, and of notes on pods, by outcome.",
    ["outcome"],
)
LIMIT_WRITES = Counter(
    "quotaward_resource_quota_writes", "Writes of the quota manager's resource quotas, by outcome.", ["outcome"]
)
QUESTIONS_UNDER_WAY = Gauge("quotaward_questions_under_way", "Questions of people and scripts that are being answered.")
QUESTIONS_WAITING = Gauge("quotaward_questions_waiting", "Questions of people and scripts that wait for their turn.")
QUESTIONS_REFUSED = Counter(
    "quotaward_questions_refused", "Questions refused because too many of the same asker were unanswered."
)
BODIES_REFUSED = Counter(
    "quotaward_bodies_refused", "Request bodies that were refused as too-large, too-wide or too-deep.", ["reason"]
)
BUILD = Gauge("quotaward_build_info", "1; the labels say which Quotaward this is.", ["version", "commit", "python"])
EXPIRY = Gauge(
    "quotaward_certificate_expiry_timestamp_seconds",
    "When what we show ends: our certificate or token for the API server (client, token), and that of serving.",
    ["use"],
)
CERTIFICATES_USABLE = Gauge("quotaward_certificates_usable", "1 while the certificate files can be loaded.")
REVIEWS = Counter(
    "quotaward_access_reviews",
    "Reviews of tokens and rights by the API server, by kind and outcome.",
    ["kind", "outcome"],
)

"""The annotations, labels and scheduling gates that are read of objects, and the names that people mistake for them.

The decoder takes the names from here. ``quotaward check`` warns of similar names. A test compares the tables of the
documentation.
"""

from dataclasses import dataclass

from app.job_kinds import BUILT_IN
from policy.objects import run_time

ANNOTATION, LABEL, GATE_NAME = "annotation", "label", "scheduling gate"

PREEMPTIBLE = "quotaward.dev/preemptible"
QUEUE = "scheduling.volcano.sh/queue-name"
ALLOWED_QUEUES = "quotaward.dev/allowed-queues"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
GROUP = "scheduling.x-k8s.io/pod-group"
LEGACY_GROUP = "pod-group.scheduling.sigs.k8s.io"
GATE = "quotaward.dev/quota"
GATED = "quotaward.dev/gated"
IGNORE_DISRUPTIONS = "quotaward.dev/ignore-disruptions"
"""The label by which manifests/jobs/ignore-disruptions chooses namespaces. Only the API server reads it."""
GROWTH = "quotaward.dev/growth"
"""The label by which manifests/admission and manifests/resize leave a namespace out. Only the API server reads it."""
JOBS_WAIT = "quotaward.dev/jobs"
"""The label of a namespace whose Jobs wait as a whole."""
QUEUED = "quotaward.dev/queued"
"""The label that manifests/jobs/queued gives to a Job that it has suspended for us."""
MIN_PARALLELISM = "quotaward.dev/min-parallelism"
"""The annotation of a Job with how many pods it may start with. It makes the Job elastic."""
PARALLELISM = "quotaward.dev/parallelism"
"""The annotation of an elastic Job with the parallelism that its user asks for. Its spec has what was granted."""
RUN_TIME = run_time.RUN_TIME
"""How long a pod runs."""
MIN_RUN_TIME = run_time.MIN_RUN_TIME
"""How long a pod runs at least before it is evicted for other quotas or queues."""
MAX_RUN_TIME = run_time.MAX_RUN_TIME
"""How long pods of a Queue or an ElasticQuota may run at most."""
CHECKPOINTED_AT = "quotaward.dev/checkpointed-at"
"""When a pod has saved its work: what it did before that is not lost if it is evicted."""
EVICT_AT = "quotaward.dev/evict-at"
"""The annotation that tells a victim when it will be evicted. It is written, and never read."""
EVICTED = "quotaward.dev/evicted"
"""The label of Events of evictions, and their annotation with what was evicted: read after a start."""
MANAGED = "quotaward.dev/managed"
MIRROR = "kubernetes.io/config.mirror"
"""The annotation that a kubelet sets on the mirror pod of a static pod."""
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
"""The annotation in which the Job controller counts the failures of an index."""
COUNTS_IN = "quotaward.dev/CountsIn"
"""The pod condition that is set while a pod counts in another queue than it names. Its message is that queue."""
AT = "simulation.quotaward.dev/at"
"""The time after the start of a simulation at which an object is created; without it, it exists from the start."""
FOR = "simulation.quotaward.dev/for"
"""The time for which a pod of a simulation runs after its start; without it, the pod never ends."""
WEIGHT = "volcano.sh/namespace.weight"
"""The resource name with which a resource quota gives its namespace a weight."""
OUR_DOMAINS = ("quotaward.dev", "simulation.quotaward.dev")
"""The prefixes of our own keys: no other program may define keys under them."""


@dataclass(frozen=True, slots=True)
class Key:
    """An annotation, a label or a gate that is read of objects of ``kinds``; of all kinds if ``kinds`` is empty.

    ``values`` lists the values that have a meaning. It is empty where any text is valid.
    """

    name: str
    part: str
    kinds: tuple[str, ...]
    values: tuple[str, ...] = ()


KEYS = (
    Key(PREEMPTIBLE, ANNOTATION, ("Pod",), ("false", "true")),
    Key(QUEUE, ANNOTATION, ("Namespace", "Pod")),
    Key(ALLOWED_QUEUES, ANNOTATION, ("Namespace",)),
    Key(VOLCANO_GROUP, ANNOTATION, ("Pod",)),
    Key(GROUP, LABEL, ("Pod",)),
    Key(LEGACY_GROUP, LABEL, ("Pod",)),
    Key(MIRROR, ANNOTATION, ("Pod",)),
    Key(INDEX_FAILURES, ANNOTATION, ("Pod",)),
    Key(GATE, GATE_NAME, ("Pod",)),
    Key(GATED, LABEL, ("Namespace",), ("false", "true")),
    Key(IGNORE_DISRUPTIONS, LABEL, ("Namespace",), ("false", "true")),
    Key(GROWTH, LABEL, ("Namespace",), ("allowed",)),
    Key(JOBS_WAIT, LABEL, ("Namespace",), ("queued",)),
    Key(QUEUED, LABEL, ("Job", *BUILT_IN), ("true",)),
    Key(MIN_PARALLELISM, ANNOTATION, ("Job",)),
    Key(PARALLELISM, ANNOTATION, ("Job",)),
    Key(RUN_TIME, ANNOTATION, ("Pod", "PodGroup", "Job", "Queue", "ElasticQuota")),
    Key(MIN_RUN_TIME, ANNOTATION, ("Pod", "Queue", "ElasticQuota")),
    Key(MAX_RUN_TIME, ANNOTATION, ("Queue", "ElasticQuota")),
    Key(CHECKPOINTED_AT, ANNOTATION, ("Pod",)),
    Key(MANAGED, LABEL, ("ResourceQuota",)),
    Key(AT, ANNOTATION, ()),
    Key(FOR, ANNOTATION, ("Pod",)),
)

USE_QUEUE = f"is not read: a pod or its namespace names its queue in the annotation {QUEUE}"
USE_GROUP = f"is not read: a pod names its PodGroup in the label {GROUP}"
USE_MINIMUM = f"{USE_GROUP}, and the PodGroup its spec.minMember"
USE_PREEMPTIBLE = f'is not read: a pod that must not be evicted needs the annotation {PREEMPTIBLE}: "false"'
NO_HIERARCHY = (
    "is not read: spec.parent of a Queue names the queue that it stands below; quotaward check --convert DIR writes it"
)
QUOTAS_HAVE_NONE = "is not read: elastic quotas have no hierarchy here, each counts on its own"
SIZE = "is not read: a pod counts in the quota of its namespace"

CONFUSED = {
    "queue": USE_QUEUE,
    "queue-name": USE_QUEUE,
    "volcano.sh/queue-name": USE_QUEUE,
    "volcano.sh/queue": USE_QUEUE,
    "scheduling.volcano.sh/queue": USE_QUEUE,
    "scheduling.k8s.io/queue-name": USE_QUEUE,
    "scheduling.x-k8s.io/queue-name": USE_QUEUE,
    "scheduling.volcano.sh/default-queue": USE_QUEUE,
    "kueue.x-k8s.io/queue-name": USE_QUEUE,
    "kai.scheduler/queue": USE_QUEUE,
    "runai/queue": USE_QUEUE,
    "yunikorn.apache.org/queue": USE_QUEUE,
    "quotaward.dev/queue": USE_QUEUE,
    "quotaward.dev/queue-name": USE_QUEUE,
    "pod-group": USE_GROUP,
    "pod-group-name": USE_GROUP,
    "scheduling.k8s.io/pod-group": USE_GROUP,
    "scheduling.volcano.sh/group-name": f"is not read: the annotation {VOLCANO_GROUP} is",
    "volcano.sh/group-name": f"is not read: the annotation {VOLCANO_GROUP} is",
    "scheduling.volcano.sh/pod-group": f"is not read: the annotation {VOLCANO_GROUP} is",
    "pod-group.scheduling.sigs.k8s.io/name": USE_MINIMUM,
    "pod-group.scheduling.sigs.k8s.io/min-available": USE_MINIMUM,
    "gang.scheduling.koordinator.sh/name": USE_MINIMUM,
    "gang.scheduling.koordinator.sh/min-available": USE_MINIMUM,
    "kueue.x-k8s.io/pod-group-name": USE_MINIMUM,
    "volcano.sh/preemptable": USE_PREEMPTIBLE,
    "quotaward.dev/preemptable": USE_PREEMPTIBLE,
    "scheduling.x-k8s.io/preemptible": USE_PREEMPTIBLE,
    "cluster-autoscaler.kubernetes.io/preemptible": USE_PREEMPTIBLE,
    "volcano.sh/hierarchy": NO_HIERARCHY,
    "volcano.sh/hierarchy-weights": NO_HIERARCHY,
    "quota.scheduling.koordinator.sh/is-parent": QUOTAS_HAVE_NONE,
    "quota.scheduling.koordinator.sh/parent": QUOTAS_HAVE_NONE,
    "quota.scheduling.koordinator.sh/tree-id": QUOTAS_HAVE_NONE,
    "quota.scheduling.koordinator.sh/name": SIZE,
}
"""Keys that people mistake for ours, mostly because another project reads them, with the advice for each."""


@dataclass(frozen=True, slots=True)
class Other:
    """A kind of another project that looks like one of ours but is not read, and what to write instead."""

    group: str
    kind: str
    plural: str
    instead: str


_QUEUE = "a Queue of scheduling.volcano.sh/v1beta1"
_PODS_IN_QUEUE = f"the annotation {QUEUE} of the namespace"
_GROUP = "a PodGroup of scheduling.x-k8s.io/v1alpha1 with spec.minMember"

OTHERS = (
    Other(
        *("scheduling.sigs.k8s.io", "ElasticQuotaTree", "elasticquotatrees"),
        "write each of its leaves as an ElasticQuota of scheduling.x-k8s.io/v1alpha1 with min and max in its namespace",
    ),
    Other(
        *("nos.nebuly.com", "ElasticQuota", "elasticquotas"),
        "its apiVersion must be scheduling.x-k8s.io/v1alpha1, with the same spec.min and spec.max",
    ),
    Other(
        *("nos.nebuly.com", "CompositeElasticQuota", "compositeelasticquotas"),
        f"write {_QUEUE}, and {_PODS_IN_QUEUE} in each of its namespaces",
    ),
    Other(
        *("scheduling.run.ai", "Queue", "queues"),
        f"write {_QUEUE}: quota as guarantee.resource, limit as capability, overQuotaWeight as weight",
    ),
    Other("scheduling.run.ai", "PodGroup", "podgroups", f"write {_GROUP}"),
    Other(
        *("scheduling.incubator.k8s.io", "Queue", "queues"),
        "its apiVersion must be scheduling.volcano.sh/v1beta1, with the same spec.weight",
    ),
    Other("scheduling.incubator.k8s.io", "PodGroup", "podgroups", f"write {_GROUP}"),
    Other(
        *("scheduling.sigs.dev", "Queue", "queues"),
        "its apiVersion must be scheduling.volcano.sh/v1beta1, with the same spec",
    ),
    Other("scheduling.sigs.dev", "PodGroup", "podgroups", f"write {_GROUP}"),
    Other(
        *("kueue.x-k8s.io", "ClusterQueue", "clusterqueues"),
        f"write {_QUEUE}, or an ElasticQuota: nominalQuota is the guarantee or min, with borrowingLimit it is the max",
    ),
    Other("kueue.x-k8s.io", "LocalQueue", "localqueues", f"write {_PODS_IN_QUEUE}"),
    Other(
        "kueue.x-k8s.io",
        "Cohort",
        "cohorts",
        "write a Queue of scheduling.volcano.sh/v1beta1, and name it in spec.parent of the queues in it",
    ),
    Other(
        *("kueue.x-k8s.io", "Workload", "workloads"),
        "suspended workloads are not read; pods wait at gates if their namespace has the label quotaward.dev/gated",
    ),
    Other(
        *("quota.koordinator.sh", "ElasticQuotaProfile", "elasticquotaprofiles"),
        "write the ElasticQuotas that it would create",
    ),
    Other(
        *("scheduling.koordinator.sh", "Reservation", "reservations"),
        "Quotaward itself reserves nodes for jobs that starve",
    ),
)

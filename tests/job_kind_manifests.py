"""Writes the manifests of each built-in kind of jobs (manifests/jobs/kinds): ``python -m tests.job_kind_manifests``.

They are those of manifests/jobs/queued, made from the rows of the table of kinds. A test compares them.
"""

from pathlib import Path

from app.job_kinds import CONDITIONS, EACH, SHIPPED, Row

MANIFESTS = Path(__file__).parents[1] / "manifests"
FOLDER = "jobs/kinds"
OVERLAY = "overlays/default-scheduler"
ACCOUNTS = (
    "['system:serviceaccount:quotaward-system:quotaward', 'system:serviceaccount:quotaward-system:quotaward-scheduler']"
)
LABEL = "quotaward.dev/queued"

NOTE = "# Made from the row of {kind} in app/job_kinds.py by tests/job_kind_manifests.py: change one of these.\n"

METADATA = """\
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: quotaward
    app.kubernetes.io/part-of: quotaward
"""

MUTATING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
{metadata}spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector:
      matchLabels:
        quotaward.dev/jobs: queued
      matchExpressions:
        - key: kubernetes.io/metadata.name
          operator: NotIn
          values: [kube-system, kube-public, kube-node-lease, quotaward-system]
    resourceRules:
      - apiGroups: [{row.group}]
        apiVersions: [{row.version}]
        operations: [{operation}]
        resources: [{row.plural}]
  matchConditions:
{conditions}
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >-
{patch}
"""

BINDING = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}Binding
{metadata}spec:
  policyName: {name}
"""

OWN_CHANGES = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
{metadata}spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [{row.group}]
        apiVersions: [{row.version}]
        operations: [UPDATE]
        resources: [{row.plural}]
  matchConditions:
    - name: is-by-quotaward
      expression: "request.userInfo.username in {accounts}"
  variables:
{variables}
    - name: keepsTheMetadata  # managedFields and generation are the API server's
      expression: >-
        [oldObject.metadata, object.metadata].all(each, dyn(each).all(field,
        field in ['managedFields', 'generation', 'resourceVersion']
        || dyn(oldObject.metadata)[?field] == dyn(object.metadata)[?field]))
  validations:
    - expression: {kept} && variables.keepsTheMetadata
      message: "of a {row.kind} Quotaward may change {row.suspend}, and nothing else"
"""

RIGHT = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
{metadata}rules:
  - apiGroups: [{row.group}]
    resources: [{row.plural}]
    verbs: [list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
{metadata}roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {name}
subjects:
  # Beside a second scheduler the pod has the scheduler's service account; elsewhere Quotaward has its own.
  - kind: ServiceAccount
    name: quotaward-scheduler
    namespace: quotaward-system
  - kind: ServiceAccount
    name: quotaward
    namespace: quotaward-system
"""

KUSTOMIZATION = """\
# Jobs of the kind {row.kind} wait as a whole: see docs/jobs.md. Needs Kubernetes 1.36; before that {right} and
# own-changes.yaml alone are of use.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - suspend.yaml
  - stay-suspended.yaml
  - own-changes.yaml
  - {right}
"""

OVERLAID = """\
# Jobs of the kind {row.kind}, started by the user that Quotaward is on a control plane node: see docs/jobs.md.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../../../../{folder}
patches:
  - target:
      kind: ClusterRoleBinding
      name: quotaward-{plural}
    patch: |-
      - op: replace
        path: /subjects
        value:
          - apiGroup: rbac.authorization.k8s.io
            kind: User
            name: quotaward
  - target:
      kind: MutatingAdmissionPolicy
      name: quotaward-{plural}-stay-suspended
    patch: |-
      - op: test
        path: /spec/matchConditions/0/name
        value: is-not-by-quotaward
      - op: replace
        path: /spec/matchConditions/0/expression
        value: "!(request.userInfo.username in ['quotaward'])"
  - target:
      kind: ValidatingAdmissionPolicy
      name: quotaward-{plural}-own-changes
    patch: |-
      - op: test
        path: /spec/matchConditions/0/name
        value: is-by-quotaward
      - op: replace
        path: /spec/matchConditions/0/expression
        value: "request.userInfo.username in ['quotaward']"
"""


def files() -> dict[str, str]:
    """The content of each file, by its path below the manifests."""
    found: dict[str, str] = {}
    for row in SHIPPED:
        folder, right = f"{FOLDER}/{row.kind.lower()}", f"quotaward-{row.plural}.yaml"
        of_row = {"kustomization": KUSTOMIZATION.format(row=row, right=right)}
        of_row |= {"suspend": _suspend(row), "stay-suspended": _stay_suspended(row), "own-changes": _own_changes(row)}
        of_row[right.removesuffix(".yaml")] = _filled(RIGHT, row=row, name=f"quotaward-{row.plural}")
        found |= {f"{folder}/{name}.yaml": NOTE.format(kind=row.kind) + text for name, text in of_row.items()}
        overlaid = OVERLAID.format(row=row, folder=folder, plural=row.plural)
        found[f"{OVERLAY}/{folder}/kustomization.yaml"] = NOTE.format(kind=row.kind) + overlaid
    return found


def _filled(template: str, *, name: str, **values: object) -> str:
    """The text of objects of this name."""
    return template.format(name=name, metadata=METADATA.format(name=name), **values)


def _suspend(row: Row) -> str:
    name = f"quotaward-{row.plural}-suspend"
    return _filled(
        MUTATING, row=row, name=name, operation="CREATE", conditions=_conditions(_on("object", row)), patch=_patch(row)
    ) + _filled(BINDING, kind="MutatingAdmissionPolicy", name=name)


def _stay_suspended(row: Row) -> str:
    name = f"quotaward-{row.plural}-stay-suspended"
    was, is_now = (f"{each}{_optional(row.suspend)}.orValue(false)" for each in ("oldObject", "object"))
    conditions = {
        "is-not-by-quotaward": f"!(request.userInfo.username in {ACCOUNTS})",
        "starts-it": f"{was} && !{is_now}",
        **_on("oldObject", row),
        "has-not-ended": _has_not_ended(row),
    }
    return _filled(
        MUTATING,
        row=row,
        name=name,
        operation="UPDATE",
        conditions=_conditions({each: text for each, text in conditions.items() if text}),
        patch=_patch(row),
    ) + _filled(BINDING, kind="MutatingAdmissionPolicy", name=name)


def _own_changes(row: Row) -> str:
    """All is compared but the field itself, on each level of its path."""
    name, parts = f"quotaward-{row.plural}-own-changes", row.suspend.split(".")
    variables, kept = [], []
    for depth, part in enumerate(parts):
        above = ".".join(parts[:depth])
        # Whoever changes the rest of an object does not change its status. The metadata is compared below.
        left_out = [part] if depth else [part, "metadata", "status"]
        old, new = (f"{each}{_optional(above)}.orValue({{}})" if above else each for each in ("oldObject", "object"))
        names = ", ".join(f"'{each}'" for each in left_out)
        variable = f"keeps{''.join(each[0].upper() + each[1:] for each in parts[:depth]) or 'TheObject'}"
        variables.append(
            f"    - name: {variable}\n      expression: >-\n"
            f"        [dyn({old}), dyn({new})].all(each, each.all(field,\n"
            f"        field in [{names}] || dyn({old})[?field] == dyn({new})[?field]))"
        )
        kept.append(f"variables.{variable}")
    return (
        _filled(
            OWN_CHANGES, row=row, name=name, accounts=ACCOUNTS, variables="\n".join(variables), kept=" && ".join(kept)
        )
        + _filled(BINDING, kind="ValidatingAdmissionPolicy", name=name).rstrip()
        + "\n  validationActions: [Deny]\n"
    )


def _on(subject: str, row: Row) -> dict[str, str]:
    """What is true of a job that Quotaward starts, beside its end."""
    heads = list(dict.fromkeys(_optional(each.path.partition(EACH)[0]) for each in row.templates))
    found = {"has-pods-of-its-own": " || ".join(f"{subject}{head}.hasValue()" for head in heads)}
    if row.managed_by is not None:
        managed_by = f"{subject}{_optional(row.managed_by.field)}.orValue('')"
        found["is-run-by-its-own-controller"] = f"{managed_by} in ['', '{row.managed_by.own}']"
    owners = f"{subject}.metadata.?ownerReferences.orValue([])"
    found["has-no-owner-that-starts-it"] = f"{owners}.all(o, !has(o.controller) || !o.controller)"
    if row.only_if:
        found["bears-to-be-suspended"] = f"{subject}{_optional(row.only_if)}.orValue(false) == true"
    if row.unless_set:
        found["has-nothing-that-forbids-it"] = f"!{subject}{_optional(row.unless_set)}.hasValue()"
    return found


def _has_not_ended(row: Row) -> str:
    ways = []
    if row.end.conditions:
        conditions = f"oldObject{_optional(CONDITIONS)}.orValue([])"
        ways.append(f"!{conditions}.exists(c, c.status == 'True' && c.type in {_listed(row.end.conditions)})")
    if row.end.field:
        ways.append(f"!(oldObject{_optional(row.end.field)}.orValue('') in {_listed(row.end.values)})")
    return " && ".join(ways)


def _patch(row: Row) -> str:
    """A JSON patch: without the schema of a custom resource an ApplyConfiguration cannot be written."""
    parts, steps = row.suspend.split("."), list[str]()
    for depth in range(2, len(parts)):
        parent = parts[:depth]
        steps.append(
            f"(object{_optional('.'.join(parent))}.hasValue() ? [] :"
            f' [JSONPatch{{op: "add", path: "/{"/".join(parent)}", value: {{}}}}])'
        )
    steps.append(f'[JSONPatch{{op: "add", path: "/{"/".join(parts)}", value: true}}]')
    labels = f'[JSONPatch{{op: "add", path: "/metadata/labels", value: {{"{LABEL}": "true"}}}}]'
    label = f'[JSONPatch{{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("{LABEL}"), value: "true"}}]'
    steps.append(f"(has(object.metadata.labels) ? {label} : {labels})")
    return "\n".join(f"          {'+ ' if at else ''}{step}" for at, step in enumerate(steps))


def _conditions(named: dict[str, str]) -> str:
    return "\n".join(f'    - name: {name}\n      expression: "{text}"' for name, text in named.items())


def _optional(path: str) -> str:
    """A path in CEL, of which each field may be missing."""
    return "".join(f".?{part}" for part in path.split("."))


def _listed(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def main() -> None:
    """Writes the files."""
    for path, text in files().items():
        (MANIFESTS / path).parent.mkdir(parents=True, exist_ok=True)
        (MANIFESTS / path).write_text(text)


if __name__ == "__main__":
    main()

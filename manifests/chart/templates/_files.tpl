{{/* The chart has no manifests of its own: it renders those that kustomize builds, in the release's namespace. */}}

{{/* One file of them, with the rights given to whoever has them here. Takes a list: the chart's context, the file. */}}
{{- define "quotaward.file" -}}
{{- $context := index . 0 -}}
{{- $account := "  - kind: ServiceAccount\n    name: quotaward\n    namespace: quotaward-system" -}}
{{- $user := "  - apiGroup: rbac.authorization.k8s.io\n    kind: User\n    name: quotaward" -}}
{{- $holder := dict "standalone" $account "sidecar" ($account | replace "name: quotaward\n" "name: quotaward-scheduler\n") "none" $user -}}
{{- $text := $context.Files.Get (printf "files/%s" (index . 1)) | required (printf "%s is missing" (index . 1)) -}}
{{- $text | replace $account (get $holder $context.Values.run) | replace "quotaward-system" $context.Release.Namespace -}}
{{- end -}}

{{/* A right that stands in its file for both accounts that Quotaward may have. Takes a list: the chart's context, the file. */}}
{{- define "quotaward.right" -}}
{{- $context := index . 0 -}}
{{- $text := $context.Files.Get (printf "files/%s" (index . 1)) | required (printf "%s is missing" (index . 1)) -}}
{{- if eq $context.Values.run "none" -}}
{{- $user := "subjects:\n  - apiGroup: rbac.authorization.k8s.io\n    kind: User\n    name: quotaward\n" -}}
{{- $text = regexReplaceAll "(?s)subjects:.*" $text $user -}}
{{- end -}}
{{- $text | replace "quotaward-system" $context.Release.Namespace -}}
{{- end -}}

{{/* The policies for jobs that wait as a whole, which know Quotaward by the names of its accounts. Takes a list: the chart's
context, the folder. */}}
{{- define "quotaward.queuedJobs" -}}
{{- $context := index . 0 -}}
{{- $folder := index . 1 -}}
{{- $accounts := "['system:serviceaccount:quotaward-system:quotaward', 'system:serviceaccount:quotaward-system:quotaward-scheduler']" -}}
{{- $files := list "suspend" "stay-suspended" "own-changes" -}}
{{- if eq $folder "jobs/queued" }}{{ $files = append $files "keep-granted" }}{{ end -}}
{{- range $files }}
---
{{ $text := $context.Files.Get (printf "files/%s/%s.yaml" $folder .) | required (printf "%s/%s.yaml is missing" $folder .) -}}
{{- if eq $context.Values.run "none" }}{{ $text = $text | replace $accounts "['quotaward']" }}{{ end -}}
{{- $text | replace "quotaward-system" $context.Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* The configuration of a webhook that Quotaward serves itself, with the CA by which it is known. Takes a list: the chart's
context, the file. */}}
{{- define "quotaward.webhook" -}}
{{- $context := index . 0 -}}
{{- $values := $context.Values.webhook -}}
{{- if ne $context.Values.run "standalone" }}{{ fail "webhook: needs run=standalone, whose Service the API server calls" }}{{ end -}}
{{- if not (or $values.caBundle $values.annotations) -}}
{{- fail "webhook: needs webhook.caBundle, or webhook.annotations for an injector: the API server trusts nobody without a CA" -}}
{{- end -}}
{{- $webhook := include "quotaward.file" . | fromYaml -}}
{{- with $values.annotations }}{{ $_ := set $webhook.metadata "annotations" . }}{{ end -}}
{{- range $webhook.webhooks -}}
{{- if $values.caBundle }}{{ $_ := set .clientConfig "caBundle" $values.caBundle }}{{ end -}}
{{- $_ := set . "failurePolicy" $values.failurePolicy -}}
{{- end -}}
{{- toYaml $webhook -}}
{{- end -}}

{{/* The rules of admission, for the scheduler that asks Quotaward here. */}}
{{- define "quotaward.admission" -}}
{{- range $path, $_ := .Files.Glob "files/admission/*.yaml" -}}
{{- if ne (base $path) "kustomization.yaml" }}
---
{{ $text := include "quotaward.file" (list $ (printf "admission/%s" (base $path))) -}}
{{- if eq $.Values.run "none" }}{{ $text = $text | replace "\"'quotaward-scheduler'\"" "\"'default-scheduler'\"" }}{{ end -}}
{{- $text -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A Deployment with the values put in. Takes a list: the chart's context, the file. */}}
{{- define "quotaward.deployment" -}}
{{- $values := (index . 0).Values -}}
{{- $namespace := (index . 0).Release.Namespace -}}
{{- $deployment := include "quotaward.file" . | fromYaml -}}
{{- $pod := $deployment.spec.template.spec -}}
{{- $_ := set $deployment.spec "replicas" (int $values.replicas) -}}
{{- range concat ($pod.initContainers | default list) $pod.containers -}}
{{- if eq .name "quotaward" -}}
{{- $_ := set . "image" (printf "%s:%s" $values.image.repository ($values.image.tag | default (index $ 0).Chart.AppVersion)) -}}
{{- $_ := set . "resources" $values.resources -}}
{{- if ne $namespace "quotaward-system" }}{{ $_ := set . "args" (append .args (print "--leader.namespace=" $namespace)) }}{{ end -}}
{{- $_ := set . "args" (concat .args $values.extraArgs) -}}
{{- else -}}
{{- $_ := set . "image" (printf "%s:%s" $values.scheduler.image.repository $values.scheduler.image.tag) -}}
{{- end -}}
{{- end -}}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- range $name := list "tolerations" "affinity" "imagePullSecrets" "priorityClassName" "topologySpreadConstraints" -}}
{{- with get $values $name }}{{ $_ := set $pod $name . }}{{ end -}}
{{- end -}}
{{- $template := $deployment.spec.template.metadata -}}
{{- with $values.podAnnotations }}{{ $_ := set $template "annotations" (merge ($template.annotations | default dict) .) }}{{ end -}}
{{- with $values.podLabels }}{{ $_ := set $template "labels" (merge $template.labels .) }}{{ end -}}
{{- if eq $values.run "sidecar" -}}
{{- $digest := include "quotaward.file" (list (index . 0) "scheduler/config.yaml") | sha256sum -}}
{{- $_ := set $deployment.spec.template.metadata.annotations "checksum/config" $digest -}}
{{- end -}}
{{- toYaml $deployment -}}
{{- end -}}

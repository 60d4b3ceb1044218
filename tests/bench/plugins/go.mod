module quotaward.dev/bench/plugins

go 1.26.0

tool sigs.k8s.io/scheduler-plugins/cmd/scheduler

require sigs.k8s.io/scheduler-plugins v0.34.7

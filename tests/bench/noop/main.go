// A scheduler extender that does nothing: it decodes what kube-scheduler sends with the official types, and echoes it.
// What it costs is the floor of what a usual extender in Go costs, and the peer that Quotaward is measured against.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"

	extender "k8s.io/kube-scheduler/extender/v1"
)

func answer[Request, Reply any](reply func(*Request) Reply) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		var args Request
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(reply(&args)); err != nil {
			log.Print(err)
		}
	}
}

func filter(args *extender.ExtenderArgs) *extender.ExtenderFilterResult {
	return &extender.ExtenderFilterResult{Nodes: args.Nodes, NodeNames: args.NodeNames}
}

func prioritize(args *extender.ExtenderArgs) extender.HostPriorityList {
	scores := extender.HostPriorityList{}
	if args.NodeNames != nil {
		for _, name := range *args.NodeNames {
			scores = append(scores, extender.HostPriority{Host: name})
		}
	}
	return scores
}

func preempt(args *extender.ExtenderPreemptionArgs) *extender.ExtenderPreemptionResult {
	return &extender.ExtenderPreemptionResult{NodeNameToMetaVictims: args.NodeNameToMetaVictims}
}

func main() {
	http.HandleFunc("/extender/filter", answer(filter))
	http.HandleFunc("/extender/prioritize", answer(prioritize))
	http.HandleFunc("/extender/preempt", answer(preempt))
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

// Says what Kubernetes' own code makes of quantities and pods; see record.py.
package main

import (
	"encoding/json"
	"log"
	"math"
	"os"

	"gopkg.in/inf.v0"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

type questions struct {
	Quantities []string `json:"quantities"`
	Pods       []v1.Pod `json:"pods"`
}

// A quantity is answered by [thousandths, whole units], null where it is invalid, and an element is null where it
// is more than an int64 holds. A pod is answered by the amounts that the scheduler reserves.
type answers struct {
	Quantities [][]*int64         `json:"quantities"`
	Pods       []map[string]int64 `json:"pods"`
}

func main() {
	var asked questions
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	var said answers
	for _, text := range asked.Quantities {
		said.Quantities = append(said.Quantities, quantity(text))
	}
	for i := range asked.Pods {
		said.Pods = append(said.Pods, request(&asked.Pods[i]))
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		log.Fatal(err)
	}
}

func quantity(text string) []*int64 {
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	asDefaulted(&parsed)
	milli, whole := parsed.MilliValue(), parsed.Value()
	answer := []*int64{nil, nil}
	if holds(parsed, 3) {
		answer[0] = &milli
	}
	if holds(parsed, 0) {
		answer[1] = &whole
	}
	return answer
}

// holds tells whether the quantity times 10^power is at most the largest int64.
func holds(quantity resource.Quantity, power int) bool {
	copied := quantity.DeepCopy()
	value := new(inf.Dec).Abs(copied.AsDec())
	return value.Cmp(inf.NewDec(math.MaxInt64, inf.Scale(power))) <= 0
}

// asDefaulted rounds as the API server does whenever it decodes a resource list.
func asDefaulted(quantity *resource.Quantity) {
	quantity.RoundUp(resource.Milli)
}

func request(pod *v1.Pod) map[string]int64 {
	for _, list := range lists(pod) {
		for name, quantity := range list {
			asDefaulted(&quantity)
			list[name] = quantity
		}
	}
	amounts := map[string]int64{}
	// As kube-scheduler 1.37 asks by default (pkg/scheduler/framework, PodInfo.CalculateResource).
	options := helper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	for name, quantity := range helper.PodRequests(pod, options) {
		if name == v1.ResourceCPU {
			amounts[string(name)] = quantity.MilliValue()
		} else {
			amounts[string(name)] = quantity.Value()
		}
	}
	return amounts
}

func lists(pod *v1.Pod) []v1.ResourceList {
	found := []v1.ResourceList{pod.Spec.Overhead, pod.Status.AllocatedResources}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		found = append(found, container.Resources.Requests)
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		found = append(found, status.AllocatedResources)
		if status.Resources != nil {
			found = append(found, status.Resources.Requests)
		}
	}
	for _, resources := range []*v1.ResourceRequirements{pod.Spec.Resources, pod.Status.Resources} {
		if resources != nil {
			found = append(found, resources.Requests)
		}
	}
	return found
}

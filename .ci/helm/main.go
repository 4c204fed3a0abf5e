// Command check-manifests reads YAML documents from standard input and fails if one of them is not an object that Kubernetes,
// the Prometheus Operator or the Gateway API know: an unknown kind, an unknown or repeated field, a value of the wrong
// type. It also refuses what the API server refuses in a pod: a name, an environment variable or a mount path that
// appears twice, and a mount of a volume that the pod does not have.
//
// It prints each good document as a line of JSON. Errors go to standard error, and the exit status is then 1.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	reader "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	known := scheme.Scheme
	if err := errors.Join(monitoring.AddToScheme(known), gateway.Install(known)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	strict := json.SerializerOptions{Yaml: true, Strict: true}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, strict)
	documents := reader.NewYAMLReader(bufio.NewReader(os.Stdin))
	failed := false
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && !isEmpty(document) {
			err = check(decoder, document)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check prints a document as JSON, or returns its problems.
func check(decoder runtime.Decoder, document []byte) error {
	object, kind, err := decoder.Decode(document, nil, nil)
	if err != nil {
		return err
	}
	var problems []error
	if pod := podOf(object); pod != nil {
		for _, problem := range podProblems(pod) {
			problems = append(problems, fmt.Errorf("%s: %s", kind.Kind, problem))
		}
	}
	line, err := yaml.YAMLToJSON(document)
	if err == nil && len(problems) == 0 {
		fmt.Printf("%s\n", line)
	}
	return errors.Join(append(problems, err)...)
}

// isEmpty says whether a document has only comments and separators.
func isEmpty(document []byte) bool {
	for _, line := range bytes.Split(document, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// podOf returns the pod that an object is or makes; nil if it makes none.
func podOf(object runtime.Object) *core.PodSpec {
	switch it := object.(type) {
	case *core.Pod:
		return &it.Spec
	case *apps.Deployment:
		return &it.Spec.Template.Spec
	case *batch.Job:
		return &it.Spec.Template.Spec
	}
	return nil
}

// podProblems returns what is repeated or missing in a pod.
func podProblems(pod *core.PodSpec) []string {
	var problems []string
	once := func(seen map[string]bool, what, name string) {
		if seen[name] {
			problems = append(problems, fmt.Sprintf("%s %s appears twice", what, name))
		}
		seen[name] = true
	}
	volumes, containers := map[string]bool{}, map[string]bool{}
	for _, volume := range pod.Volumes {
		once(volumes, "volume", volume.Name)
	}
	for _, container := range append(append([]core.Container{}, pod.InitContainers...), pod.Containers...) {
		once(containers, "container", container.Name)
		variables, mounts := map[string]bool{}, map[string]bool{}
		for _, variable := range container.Env {
			once(variables, "variable", variable.Name)
		}
		for _, mount := range container.VolumeMounts {
			once(mounts, "mount path", mount.MountPath)
			if !volumes[mount.Name] {
				problems = append(problems, fmt.Sprintf("container %s mounts %s, which is no volume", container.Name, mount.Name))
			}
		}
	}
	return problems
}

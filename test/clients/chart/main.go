// Command chart-types reads rendered manifests of Kubernetes and decodes each strictly into the type of its API: a field
// that is not there, twice there or of another type is an error. It writes them to standard output as one JSON list.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	split "k8s.io/apimachinery/pkg/util/yaml"
	kubelet "k8s.io/kubelet/config/v1"
	credentials "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/yaml"
)

var types = map[string]func() any{
	"apps/v1 Deployment":                                              func() any { return &apps.Deployment{} },
	"apps/v1 StatefulSet":                                             func() any { return &apps.StatefulSet{} },
	"kubelet.config.k8s.io/v1 CredentialProviderConfig":               func() any { return &kubelet.CredentialProviderConfig{} },
	"credentialprovider.kubelet.k8s.io/v1 CredentialProviderRequest":  func() any { return &credentials.CredentialProviderRequest{} },
	"credentialprovider.kubelet.k8s.io/v1 CredentialProviderResponse": func() any { return &credentials.CredentialProviderResponse{} },
	"batch/v1 Job":                            func() any { return &batch.Job{} },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"v1 Service":                              func() any { return &core.Service{} },
	"v1 PersistentVolumeClaim":                func() any { return &core.PersistentVolumeClaim{} },
	"networking.k8s.io/v1 Ingress":            func() any { return &networking.Ingress{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	decoded := []any{}
	documents := split.NewYAMLReader(bufio.NewReader(os.Stdin))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return json.NewEncoder(os.Stdout).Encode(decoded)
		}
		if err != nil {
			return err
		}
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return err
		}
		if kind.Kind == "" {
			continue // comments alone
		}
		name := kind.APIVersion + " " + kind.Kind
		make, known := types[name]
		if !known {
			return fmt.Errorf("%s is no type that the chart should have", name)
		}
		object := make()
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		decoded = append(decoded, object)
	}
}

package deploytest_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// peer is one entry of an ingress rule's from. Only labels that must be equal are read; the manifest uses no other.
type peer struct {
	Namespaces *selector `yaml:"namespaceSelector"`
	Pods       *selector `yaml:"podSelector"`
}

type selector struct {
	Labels map[string]string `yaml:"matchLabels"`
}

// selects reports whether all labels of the selector are there. An empty one selects everything.
func (s selector) selects(labels map[string]string) bool {
	for name, value := range s.Labels {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// selects applies the rules of Kubernetes: without a selector of namespaces only those of the policy's own one are
// meant, and without one of pods all of them.
func (p peer) selects(namespace string, pod map[string]string) bool {
	if p.Namespaces == nil {
		return namespace == "claudeops" && p.Pods.selects(pod)
	}
	return p.Namespaces.selects(map[string]string{"kubernetes.io/metadata.name": namespace}) &&
		(p.Pods == nil || p.Pods.selects(pod))
}

// A Prometheus of another namespace comes in by its label, and nothing else there does.
func TestTheNetworkPolicyLetsPrometheusInByItsLabel(t *testing.T) {
	var policy struct {
		Spec struct {
			Ingress []struct {
				From  []peer
				Ports []struct{ Protocol, Port string }
			}
		}
	}
	must.Do(t, yaml.Unmarshal([]byte(read(t, "deploy/kubernetes/base/networkpolicy.yaml")), &policy))
	scraped := map[string]string{"claudeops.dev/scrape": "true"}
	for _, c := range []struct {
		namespace string
		pod       map[string]string
		in        bool
	}{
		{"monitoring", scraped, true}, {"claudeops", scraped, true}, {"ingress", nil, true},
		{"monitoring", nil, false}, {"claudeops", nil, false},
		{"monitoring", map[string]string{"claudeops.dev/scrape": "false"}, false},
	} {
		in := false
		for _, rule := range policy.Spec.Ingress {
			if len(rule.Ports) != 1 || rule.Ports[0].Port != "http" || rule.Ports[0].Protocol != "TCP" || len(rule.From) == 0 {
				t.Errorf("a rule lets in more than the port of the service: %+v", rule)
			}
			for _, from := range rule.From {
				in = in || from.selects(c.namespace, c.pod)
			}
		}
		if in != c.in {
			t.Errorf("a pod of the namespace %s with the labels %v: let in %t", c.namespace, c.pod, in)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package deploy_test checks the files of docs/operations with the readers of the
// programs that they are for.
package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/artelhq/artel/sdktest/program"
)

const operations = "../../docs/operations"

// A checker checks files with the program at a path.
type checker string

func TestFiles(t *testing.T) {
	c := checker(program.Build(t, "../.."))
	t.Run("compose", c.compose)
	t.Run("kubernetes", c.kubernetes)
	t.Run("systemd", c.unit)
}

// compose: the file has the form that Docker Compose reads, what it mounts is there,
// and Artel takes the flags, the variables and the configuration.
func (a checker) compose(t *testing.T) {
	secrets := []string{"POSTGRES_PASSWORD=a", "BUCKET_SECRET=b", "ARTEL_SECRET_KEY=c", "METRICS_TOKEN=d"}
	o, err := cli.NewProjectOptions([]string{operations + "/compose/compose.yaml"}, cli.WithEnv(secrets), cli.WithProfiles([]string{"metrics"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(operations + "/compose/env.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets {
		if name, _, _ := strings.Cut(s, "="); !strings.Contains(string(example), "\n"+name+"=") {
			t.Errorf("env.example has no %s", name)
		}
	}
	for name, c := range project.Configs {
		if _, err := os.Stat(c.File); err != nil {
			t.Errorf("configuration %s: %v", name, err)
		}
	}
	artel := project.Services["artel"]
	if artel.GetScale() != 3 {
		t.Errorf("%d replicas", artel.GetScale())
	}
	if _, err := os.Stat(filepath.Join(artel.Build.Context, artel.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	a.flags(t, artel.Command[1:])
	for name := range artel.Environment {
		variable(t, name)
	}
	a.configuration(t, project.Configs["artel"].File)
}

// kubernetes: each document is of its type and has no other field, and the
// parts name each other rightly.
func (a checker) kubernetes(t *testing.T) {
	src, err := os.ReadFile(operations + "/kubernetes/artel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(src, []byte("\n---\n"))
	config := strict[core.ConfigMap](t, documents[0], "v1", "ConfigMap")
	deployment := strict[apps.Deployment](t, documents[1], "apps/v1", "Deployment")
	service := strict[core.Service](t, documents[2], "v1", "Service")
	budget := strict[policy.PodDisruptionBudget](t, documents[3], "policy/v1", "PodDisruptionBudget")
	ingress := strict[networking.Ingress](t, documents[4], "networking.k8s.io/v1", "Ingress")

	pod := deployment.Spec.Template
	for what, selector := range map[string]map[string]string{
		"deployment": deployment.Spec.Selector.MatchLabels, "service": service.Spec.Selector, "budget": budget.Spec.Selector.MatchLabels,
	} {
		for k, v := range selector {
			if pod.Labels[k] != v {
				t.Errorf("%s: the pod's %s is %q, not %q", what, k, pod.Labels[k], v)
			}
		}
	}
	c := pod.Spec.Containers[0]
	a.flags(t, c.Args[1:])
	port := c.Ports[0].Name
	if r, l, s := c.ReadinessProbe.HTTPGet.Port.StrVal, c.LivenessProbe.HTTPGet.Port.StrVal, service.Spec.Ports[0].TargetPort.StrVal; r != port || l != port || s != port {
		t.Errorf("the port is %q; the probes ask %q and %q, the service %q", port, r, l, s)
	}
	if to := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service; to.Name != service.Name || to.Port.Name != service.Spec.Ports[0].Name {
		t.Errorf("the ingress sends to %s:%s", to.Name, to.Port.Name)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.ConfigMap.Name != config.Name {
			t.Errorf("the volume %s is of %s", v.Name, v.ConfigMap.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
	}
	for name := range strings.FieldsFuncSeq(string(documents[0][:bytes.Index(documents[0], []byte("apiVersion"))]), func(r rune) bool { return !(r == '_' || 'A' <= r && r <= 'Z') }) {
		if strings.Contains(name, "_") {
			variable(t, name)
		}
	}
	file := filepath.Join(t.TempDir(), "artel.yaml")
	if err := os.WriteFile(file, []byte(config.Data["artel.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	a.configuration(t, file)
}

// unit: Artel takes the flags in the unit of systemd.
func (a checker) unit(t *testing.T) {
	src, err := os.ReadFile(operations + "/systemd/artel@.service")
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/artel serve (.*)$`).FindStringSubmatch(string(src))
	if start == nil {
		t.Fatal("no ExecStart")
	}
	a.flags(t, strings.Fields(start[1]))
}

func strict[T any](t *testing.T, src []byte, version, kind string) (v T) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := errors.Join(yaml.Unmarshal(src, &head), yaml.UnmarshalStrict(src, &v)); err != nil {
		t.Fatal(err)
	}
	if head.APIVersion != version || head.Kind != kind {
		t.Fatalf("got %s %s, want %s %s", head.APIVersion, head.Kind, version, kind)
	}
	return v
}

// flags reports arguments that artel serve does not have.
func (a checker) flags(t *testing.T, args []string) {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), string(a), "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") && !strings.Contains(string(help), " "+arg+" ") {
			t.Errorf("artel serve has no %s", arg)
		}
	}
}

// variable reports a variable that no document names.
func variable(t *testing.T, name string) {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	files = append(files, "../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(f string) bool {
		src, err := os.ReadFile(f)
		return err == nil && strings.Contains(string(src), name)
	}) {
		t.Errorf("no document names %s", name)
	}
}

// configuration reports what artel doctor finds wrong in a configuration.
func (a checker) configuration(t *testing.T, file string) {
	t.Helper()
	doctor := exec.CommandContext(t.Context(), string(a), "doctor", "--config", file, "--data", filepath.Join(t.TempDir(), "data"), "--addr", "127.0.0.1:0")
	var out bytes.Buffer
	doctor.Stdout, doctor.Stderr = &out, io.Discard
	if err := doctor.Run(); err != nil {
		t.Errorf("artel doctor: %v\n%s", err, &out)
	}
}

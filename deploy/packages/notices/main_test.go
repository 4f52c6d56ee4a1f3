package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Every module that is linked into a program of a release, on any of its systems, is named with the text of its
// licence.
func TestTheNoticesNameEveryLinkedModuleWithItsLicence(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	text, err := notices()
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{} // by name and version
	for _, section := range strings.Split(text, "\n"+strings.Repeat("=", 78)+"\n")[1:] {
		title, licence, _ := strings.Cut(section, "\n\n")
		name, _, _ := strings.Cut(title, " (")
		sections[name] = licence
	}
	modules := released(t)
	if len(modules) < 40 {
		t.Fatalf("only %d modules", len(modules))
	}
	for name, folder := range modules {
		licence := licenceFile(t, folder)
		if !strings.Contains(sections[name], licence) {
			t.Errorf("%s is linked, and its licence is not in the notices; they have %q", name, sections[name])
		}
		if !strings.Contains(text[:strings.Index(text, "\n===")], " "+name+"\n") {
			t.Errorf("%s is not in the list at the beginning", name)
		}
	}
	for name := range sections {
		if _, linked := modules[name]; !linked && strings.Contains(name, " v") {
			t.Errorf("%s is named, and not linked", name)
		}
	}
}

// released returns the modules, by name and version, of what .goreleaser.yaml builds, with their folders.
func released(t *testing.T) map[string]string {
	t.Helper()
	var release struct {
		Builds []struct {
			Main    string
			Targets []string
		}
	}
	text, err := os.ReadFile(".goreleaser.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &release)
	}
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string][]string{} // by system
	for _, build := range release.Builds {
		for _, target := range build.Targets {
			system, _, _ := strings.Cut(target, "_")
			if !slices.Contains(programs[system], build.Main) {
				programs[system] = append(programs[system], build.Main)
			}
		}
	}
	modules := map[string]string{}
	for system, mains := range programs {
		list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"}, mains...)...)
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if name, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				modules[name] = folder
			}
		}
	}
	return modules
}

// licenceFile returns the text of the file that holds a module's licence.
func licenceFile(t *testing.T, folder string) string {
	t.Helper()
	for _, pattern := range []string{"LICEN[CS]E*", "[Ll]icen[cs]e*", "COPYING*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err == nil && len(text) > 200 {
				return strings.TrimSpace(string(text))
			}
		}
	}
	t.Fatalf("%s has no licence", folder)
	return ""
}

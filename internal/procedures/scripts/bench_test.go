//go:build linux

package scripts

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// BenchmarkListing lists 1,000 scripts: the first time each is read, later only what has changed.
func BenchmarkListing(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("%s/check-%d.sh", defaultFolder,
			i)] = "#!/bin/sh\n# Check something.\n# @param mount string required Where\n# @param limit integer optional Percent\n"
	}
	s := DefaultSettings(operationtest.WriteExecutables(b, b.TempDir(), files))
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			newCatalogue(s).list()
		}
	})
	known := newCatalogue(s)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			known.list()
		}
	})
}

// BenchmarkRun runs a script that does nothing, with the reaper above it and by itself.
func BenchmarkRun(b *testing.B) {
	dir := operationtest.WriteExecutables(b, b.TempDir(),
		map[string]string{defaultFolder + "/nothing.sh": "#!/bin/sh\n# @noparams\n"})
	s := DefaultSettings(dir)
	found, _ := discoverAll(s)
	r := newRunner(s, Machine{Look: exec.LookPath, Variable: func(string) (string, bool) { return "", false },
		Redact: func(t string) string { return t }, NewID: b.Name})
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Run(b.Context(), found[0], nil, Hooks{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("directly", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "sh", found[0].Path).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

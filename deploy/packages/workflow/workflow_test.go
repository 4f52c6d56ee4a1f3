package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The trial publishes nothing: what would is left out, with a reason.
func TestNoStepOfAReleasePublishes(t *testing.T) {
	t.Parallel()
	for _, file := range []string{".github/workflows/release.yml", ".gitea/workflows/release.yml"} {
		jobs, err := readWorkflow(filepath.Join("..", "..", "..", file))
		if err != nil || len(jobs["release"].Steps) < 5 {
			t.Fatal(file, err, jobs)
		}
		m := &machine{source: "/source", tag: "v1.2.3"}
		released := false
		for _, s := range jobs["release"].Steps {
			command, _, why := m.planOf(context.Background(), s)
			if (command == "") == (why == "") {
				t.Errorf("%s: %s has the command %q and the reason %q", file, s.title(), command, why)
			}
			if strings.Contains(command, "goreleaser release") {
				released = strings.Contains(command, "--skip="+skipped)
			}
			for _, word := range []string{"mcp-publisher publish", "docker login", "${{"} {
				if strings.Contains(command, word) {
					t.Errorf("%s: %s would run %s", file, s.title(), command)
				}
			}
		}
		if !released {
			t.Errorf("%s: goreleaser would publish, or is not run", file)
		}
	}
}

// A step sees what the steps before it left, and the first that fails ends the job.
func TestStepsAreRunAsTheRunnerDoes(t *testing.T) {
	t.Parallel()
	m, err := newMachine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.temp, "tool"), []byte("#!/bin/sh\necho ran > \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{`echo "$RUNNER_TEMP" >> "$GITHUB_PATH"; echo NAME=out >> "$GITHUB_ENV"`, `tool "$NAME"`} {
		if err := m.runStep(context.Background(), workflowStep{Run: command}); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(m.clone, "out")); err != nil || string(text) != "ran\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := m.runStep(context.Background(), workflowStep{Run: "false | cat\ntrue"}); err == nil {
		t.Error("a step that fails is done")
	}
}

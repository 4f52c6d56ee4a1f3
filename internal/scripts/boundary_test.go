//go:build linux

package scripts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/processtree"
)

func TestABoundaryThatCannotBeKeptRunsNothing(t *testing.T) {
	b := newBench(t, map[string]string{"a.sh": "#!/bin/sh\n# @noparams\ntouch ran\n"})
	r, s := b.runner("boundary: landlock")
	r.machine.Confine = func(c processtree.Command, o processtree.Options) (processtree.Command, processtree.Options, error) {
		return c, o, errors.New("no Landlock here")
	}
	found, _ := Discover(s)
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got.ExitCode != exitNotRunable || !strings.Contains(got.Stderr, "no Landlock here") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("it ran all the same")
	}
	var confined []string
	r.machine.Confine = func(c processtree.Command, o processtree.Options) (processtree.Command, processtree.Options, error) {
		confined = append(confined, c.Args...)
		return c, o, nil
	}
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got != (Result{}) || !slices.Contains(confined, found[0].Path) {
		t.Errorf("%+v, confined %v", got, confined)
	}
	r, _ = b.runner("boundary: none")
	r.machine.Confine = nil
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got != (Result{}) {
		t.Errorf("%+v", got)
	}
}

//go:build linux

package scripts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

func TestABoundaryThatCannotBeKeptRunsNothing(t *testing.T) {
	b := newBench(t, map[string]string{"a.sh": "#!/bin/sh\n# @noparams\ntouch ran\n"})
	r, s := b.runner("boundary: landlock")
	r.machine.Confine = func(c processtree.Command, o processtree.Options, _ []string) (processtree.Command,
		processtree.Options, error) {
		return c, o, errors.New("no Landlock here")
	}
	found, _ := discoverAll(s)
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got.ExitCode != exitNotRunable ||
		!strings.Contains(got.Stderr, "no Landlock here") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("it ran all the same")
	}
	var confined []string
	r.machine.Confine = func(c processtree.Command, o processtree.Options, _ []string) (processtree.Command,
		processtree.Options, error) {
		confined = append(confined, c.Args...)
		return c, o, nil
	}
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got != (Result{}) ||
		!slices.Contains(confined, found[0].Path) {
		t.Errorf("%+v, confined %v", got, confined)
	}
	r, _ = b.runner("boundary: none")
	r.machine.Confine = nil
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got != (Result{}) {
		t.Errorf("%+v", got)
	}
}

// Where the settings say nothing, a system that cannot keep a boundary runs scripts without; another failure runs
// nothing.
func TestWithoutSettingsTheBoundaryIsWhatTheSystemCanKeep(t *testing.T) {
	files := map[string]string{"a.sh": "#!/bin/sh\n# @noparams\necho ran in $TMPDIR $XDG_CACHE_HOME\n"}
	for name, c := range map[string]struct {
		settings string
		err      error
		code     int
	}{
		"none there":             {"", ErrNoBoundary, 0},
		"none there, wrapped":    {"", fmt.Errorf("%w: x", ErrNoBoundary), 0},
		"none there, insisted":   {"boundary: landlock", ErrNoBoundary, exitNotRunable},
		"one that fails":         {"", errors.New("the program is gone"), exitNotRunable},
		"none, and none wanted":  {"boundary: none", errors.New("it was asked"), 0},
		"one there":              {"", nil, 0},
		"one there and insisted": {"boundary: landlock", nil, 0},
	} {
		b := newBench(t, files)
		r, s := b.runner(c.settings)
		var own string
		r.machine.Confine = func(c2 processtree.Command, o processtree.Options, write []string) (processtree.Command,
			processtree.Options, error) {
			if len(write) < 2 || write[0] != b.dir {
				t.Errorf("%s: may write %v", name, write)
			}
			own = write[1]
			return c2, o, c.err
		}
		found, _ := discoverAll(s)
		got := tell(r.Run(t.Context(), found[0], nil, Hooks{}))
		want := "ran in\n"
		if c.err == nil {
			want = "ran in " + own + " " + own + "/cache\n"
		}
		if got.ExitCode != c.code || c.code == 0 && got.Stdout != want {
			t.Errorf("%s: %+v, not %q", name, got, want)
		}
		if _, err := os.Stat(own); own != "" && err == nil {
			t.Errorf("%s: the temporary folder is still there", name)
		}
	}
}

func TestWhatScriptsMayChangeComesFromTheSettings(t *testing.T) {
	s := settings(t, "/srv/scripts", "write: [out, /srv/x/../y, ~/cache, \"~\"]\n")
	if want := []string{"/srv/scripts/out", "/srv/y", "~/cache", "~"}; !slices.Equal(s.Write, want) ||
		s.Boundary != BoundaryAuto {
		t.Errorf("%v, %q", s.Write, s.Boundary)
	}
	if _, err := ParseSettings([]byte("boundary: user"), "/work"); err == nil {
		t.Error("a boundary that does not exist was taken")
	}
}

package deploy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// manyFiles is a configuration of skills with 300 files.
func manyFiles() map[string]string {
	files := map[string]string{}
	config := "version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {options: " +
		"{write_repo_skills: true}}}\nmodules:\n"
	for i := range 100 {
		config += fmt.Sprintf("- {id: 'skill:s%d', type: skill, tags: [x], source: {local_path: {path: m/s%d}}}\n", i, i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/SKILL.md", i)] = fmt.Sprintf("---\nname: s%d\ndescription: d\n---\n", i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/a.md", i)] = fmt.Sprintf("a %d\n", i)
		files[fmt.Sprintf("agentpack/repo/m/s%d/deep/b.md", i)] = fmt.Sprintf("b %d\n", i)
	}
	files["agentpack/repo/"+configName] = config
	return files
}

func changesOf(t *testing.T, s *Service) (out []string) {
	t.Helper()
	p, err := s.Plan(t.Context(), Request{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Changes {
		out = append(out, string(c.Op)+" "+filepath.Base(filepath.Dir(c.Path))+"/"+filepath.Base(c.Path))
	}
	return out
}

// TestAPlanBelievesNoHashOfAChangedFile changes files in each way that hides a change, and plans with remembered
// hashes.
func TestAPlanBelievesNoHashOfAChangedFile(t *testing.T) {
	b := newBench(t, manyFiles())
	clock := time.Now
	b.settings.Now = func() time.Time { return clock().Add(time.Hour) } // so that the files of the test count as settled
	service := NewService(b.settings)
	if _, _, err := service.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
		t.Fatal(err)
	}
	if got := changesOf(t, service); got != nil {
		t.Fatalf("%v", got)
	}
	if info, err := os.Stat(filepath.Join(b.dir, "agentpack", "cache", "hashes")); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Fatalf("nothing is kept: %v, %v", info, err)
	}
	skills := filepath.Join(b.dir, "project", ".claude", "skills")
	same := func(name, text string) { // the same size and the same time of change
		t.Helper()
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(b.dir, "other.md")
	same(filepath.Join(skills, "s1", "a.md"), "A 1\n")
	same(filepath.Join(b.dir, "agentpack", "repo", "m", "s2", "a.md"), "A 2\n")
	operationtest.WriteFiles(t, b.dir, map[string]string{"other.md": "c 3\n",
		"project/.claude/skills/s4/a.md": "longer than before\n"})
	if err := os.Rename(other, filepath.Join(skills, "s3", "a.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(skills, "s5", "a.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(skills, "s6", "a.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{"update s1/a.md", "update s2/a.md", "update s3/a.md", "update s4/a.md", "create s5/a.md",
		"update s6/a.md"}
	for name, s := range map[string]*Service{"in the same process": service, "in another one": NewService(b.settings)} {
		if diff := cmp.Diff(want, changesOf(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, list, _, err := s.Status(t.Context(), Request{}); err != nil || len(list) != 4 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	if _, done, err := service.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil ||
		len(done.Steps) != 6 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := changesOf(t, NewService(b.settings)); got != nil {
		t.Errorf("%v", got)
	}
}

func TestHashesThatLieAreHarmless(t *testing.T) {
	b := newBench(t, manyFiles())
	clock := time.Now
	b.settings.Now = func() time.Time { return clock().Add(time.Hour) }
	if _, _, err := NewService(b.settings).Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
		t.Fatal(err)
	}
	if got := changesOf(t, NewService(b.settings)); got != nil {
		t.Fatalf("%v", got)
	}
	name := filepath.Join(b.dir, "agentpack", "cache", "hashes")
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte{}, sound...)
	changed[len(changed)-1] ^= 1
	for what, text := range map[string][]byte{"empty": {}, "cut": sound[:len(sound)/2], "changed": changed,
		"other": []byte("claudeops hashes 2\n"), "the mark alone": []byte("claudeops hashes 1\n")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := changesOf(t, NewService(b.settings)); got != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
	// Wrong hashes under a sound checksum: a plan may be deceived, what is written is not.
	if err := os.WriteFile(name, lying(sound), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(name), "unchanged")); err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	s := NewService(b.settings)
	if p, err := s.Plan(t.Context(), Request{}); err == nil && len(p.Changes) == 0 {
		t.Fatal("the plan is not deceived")
	}
	before := b.tree("project")
	if _, done, err := s.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil || done != nil {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(before, b.tree("project")); diff != "" {
		t.Errorf("%s", diff)
	}
}

// lying is a file of hashes in which each is wrong.
func lying(sound []byte) []byte {
	const mark, id = len("claudeops hashes 1\n"), 5*8 + 4
	out := append([]byte{}, sound...)
	body := out[mark+sha256.Size:]
	for rest := body; len(rest) > 2; {
		at := 2 + int(binary.LittleEndian.Uint16(rest)) + id
		rest[at] ^= 1
		rest = rest[at+sha256.Size:]
	}
	sum := sha256.Sum256(body)
	copy(out[mark:], sum[:])
	return out
}

package fileset

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestAStatCacheIsOfFilesThatHaveSettled checks each field of a file's stat data, and the rule of git's index: a file
// that was changed so shortly before it was asked about that another change could have the same time is not recorded.
func TestAStatCacheIsOfFilesThatHaveSettled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("nothing is recorded here")
	}
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"m/a.md": "a", "m/deep/b.md": "b"})
	info, err := os.Stat(filepath.Join(dir, "m", "deep", "b.md"))
	must.Do(t, err)
	id, _ := identify(info)
	changed := time.Unix(0, max(id.Changed, id.Status))
	for after, want := range map[time.Duration]bool{0: false, time.Second: false, settled - 1: false,
		settled + time.Second: true} {
		s := newStatCache(changed.Add(after))
		if s.Tree(dir, "m"); s.Whole() != want || s.Same() != want {
			t.Errorf("%s after a change: recorded %t", after, s.Whole())
		}
	}
	future := time.Now().Add(time.Hour)
	for what, change := range map[string]func(*fileID){
		"size": func(id *fileID) { id.Size++ }, "time of its content": func(id *fileID) { id.Changed++ },
		"time of its inode": func(id *fileID) { id.Status++ },
		"inode":             func(id *fileID) { id.Inode++ }, "device": func(id *fileID) { id.Device++ },
		"mode": func(id *fileID) { id.Mode ^= 0o100 },
	} {
		s := newStatCache(future)
		s.Tree(dir, "m")
		s.identities(newDisk(dir), []string{filepath.Join(dir, "m", "a.md"), filepath.Join(dir, "no", "c.md")})
		if !s.Same() {
			t.Fatalf("%s: not recorded", what)
		}
		for i := range s.folders {
			for j := range s.folders[i].files {
				file := &s.folders[i].files[j]
				before := file.id
				if change(&file.id); s.Same() {
					t.Errorf("another %s of %s is not noticed", what, file.name)
				}
				file.id = before
			}
		}
	}
}

func TestWhatIsKeptOfAPlanReadsBack(t *testing.T) {
	t.Parallel()
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"m/a.md": "a", "m/deep/b.md": "b"})
	s := newStatCache(time.Now().Add(time.Hour))
	s.Tree(dir, "m")
	s.Tree(dir, "absent")
	s.used = []string{"x"}
	q := PlanCache{used: func(string) {}, file: filepath.Join(dir, "cache", "unchanged")}
	want := keptPlan{"question", []TargetName{Codex}, []string{"a warning"}, []*StatCache{s}}
	q.savePlan(want)
	got := q.loadPlan()
	if got == nil || got.question != want.question || !cmp.Equal(got.targets, want.targets) ||
		!cmp.Equal(got.warnings, want.warnings) {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(s.folders, got.stats[0].folders, cmp.AllowUnexported(StatFolder{}, statFile{})); diff != "" ||
		!cmp.Equal(got.stats[0].used, s.used) {
		t.Errorf("%s", diff)
	}
	if p := q.Again("another question"); p != nil {
		t.Errorf("%+v", p)
	}
	if p := q.Again("question"); runtime.GOOS == "linux" && p == nil {
		t.Error("not known")
	}
}

// FuzzWhatIsKeptOfAPlan reads damaged files, also under a sound checksum.
func FuzzWhatIsKeptOfAPlan(f *testing.F) {
	dir := operationtest.WriteFiles(f, f.TempDir(), map[string]string{"m/a.md": "a"})
	s := newStatCache(time.Now().Add(time.Hour))
	s.Tree(dir, "m")
	var out packer
	out.putText("question")
	out.putNumber(0)
	out.texts([]string{"w"})
	out.putNumber(1)
	out.stat(s)
	f.Add(out.b, true)
	f.Add(out.b[:len(out.b)/2], true)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, body []byte, sound bool) {
		q := PlanCache{used: func(string) {}, file: filepath.Join(t.TempDir(), "unchanged")}
		sum := sha256.Sum256(body)
		if !sound {
			sum[0]++
		}
		replaceCache(q.file, planMark(), sum[:], body)
		if p := q.loadPlan(); p != nil && (!sound || len(p.stats) == 0) {
			t.Errorf("%+v", p)
		}
	})
}

func TestAHashIsNotRememberedOfAFileThatWasJustChanged(t *testing.T) {
	t.Parallel()
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"a.md": "one"})
	name := filepath.Join(dir, "a.md")
	info, err := os.Stat(name)
	must.Do(t, err)
	h := NewHashes(dir, time.Now)
	hash := strings.Repeat("0", 64)
	h.store(name, info, info.ModTime().Add(time.Second), hash)
	if _, known := h.lookup(name, info); known {
		t.Error("remembered one second after the change")
	}
	h.store(name, info, info.ModTime().Add(3*time.Second), hash)
	if got, known := h.lookup(name, info); !known || got != hash {
		t.Errorf("%s, %t", got, known)
	}
	var none *Hashes
	none.store(name, info, none.time(), hash)
	none.saveHashes()
	if _, known := none.lookup(name, info); known {
		t.Error("known by none")
	}
}

func FuzzHashes(f *testing.F) {
	f.Add([]byte{})
	f.Add(hashesMark())
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"cache/hashes": string(text)})
		h := NewHashes(dir, time.Now)
		h.load()
		if len(h.known) > 0 && len(text) < len(hashesMark())+32 {
			t.Errorf("%d entries of nothing", len(h.known))
		}
	})
}

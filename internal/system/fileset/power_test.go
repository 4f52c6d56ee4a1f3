package fileset

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// lossy is a disk that loses what was not put on it when the power goes.
type lossy struct {
	t       *testing.T
	unsaved []*os.File
}

func (l *lossy) wrote(f *os.File) {
	if f, err := os.OpenFile(f.Name(), os.O_RDWR, 0); err == nil {
		l.unsaved = append(l.unsaved, f)
	}
}

func (l *lossy) flushed() {
	for _, f := range l.unsaved {
		_ = f.Close()
	}
	l.unsaved = nil
}

// lose empties the files that are in memory alone, wherever they were moved to.
func (l *lossy) lose() (lost int) {
	for _, f := range l.unsaved {
		if err := f.Truncate(0); err != nil {
			l.t.Error(err)
		}
	}
	lost = len(l.unsaved)
	l.flushed()
	return lost
}

// A loss of power takes what was written and not put on disk. Many files are put on disk together, and whatever the
// moment, the next call ends with files, contents and ledger of one of the two states.
func TestPowerGoesWhileManyFilesAreWritten(t *testing.T) {
	t.Parallel()
	const many = 50
	sets := [2]map[string]string{{}, {}}
	for i := range many {
		sets[0][fmt.Sprintf("a%d.md", i)] = fmt.Sprint("first ", i)
		sets[1][fmt.Sprintf("a%d.md", i)] = fmt.Sprint("second ", i)
	}
	moments := []string{"kept", "journal", "stage 40", "step 0", "step 40", "manifest", "folders", "snapshot", "end"}
	lost := 0
	for _, moment := range moments {
		m := newMachine(t, nil)
		m.deploy(sets[0])
		for _, again := range []string{"", "step 30"} {
			memory := &lossy{t: t}
			e := m.engine()
			e.memory = memory
			e.KillAt(func(step string) bool { return strings.HasPrefix(step, moment) })
			if _, _, err := e.Apply(t.Context(), m.want(sets[1]), Approval{}); !WasKilled(err) {
				t.Fatal(moment, err)
			}
			lost += memory.lose()
			e.KillAt(func(step string) bool { return step == again })
			if _, err := e.mend(t.Context()); err != nil && !WasKilled(err) {
				t.Fatal(moment, err)
			}
			lost += memory.lose()
			soundAfterPowerLoss(t, m, moment)
			m.deploy(sets[0])
		}
	}
	if lost == 0 {
		t.Error("nothing was ever in memory alone: the test tells nothing")
	}
}

// soundAfterPowerLoss mends as the next call does, and expects no content to be lost.
func soundAfterPowerLoss(t *testing.T, m *machine, moment string) {
	t.Helper()
	e := m.engine()
	said, err := e.mend(t.Context())
	if err != nil || strings.Contains(said, "meanwhile") {
		t.Fatalf("%s: %q, %v", moment, said, err)
	}
	last, err := e.state.Last()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range last.Managed {
		if text, err := os.ReadFile(f.Path); err != nil || Hash(text) != f.SHA256 {
			t.Errorf("%s: %s is %q, %v", moment, f.Path, text, err)
		}
		if _, err := e.state.Kept(f.SHA256); err != nil {
			t.Errorf("%s: %v", moment, err)
		}
	}
}

// Package corpus reads samples of changes, and counts in how many of them the facts are seen: of poisoned ones on the
// poisoned lines, of clean ones as noise.
package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// Sample is a change of which is known whether it is poisoned.
type Sample struct {
	Kind    string        `json:"kind"`              // its row of the table, such as "obvious" or "runbook"
	Source  string        `json:"source"`            // the collection
	Name    string        `json:"name"`              // within the collection
	Poison  bool          `json:"poison,omitempty"`  // whether it is poisoned
	Classes []facts.Class `json:"classes,omitempty"` // those that fit the poison; empty if all do
	First   int           `json:"first,omitempty"`   // the first poisoned line of the first file, from 1; 0 for all
	Last    int           `json:"last,omitempty"`    // the last poisoned line
	Files   []File        `json:"files"`
}

// File is a file of a sample; Old is empty for a new one.
type File struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// HeldOut says whether a sample belongs to the third to which no rule is tuned, by the hash of its name.
func (s Sample) HeldOut() bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s.Source+"/"+s.Name)
	return h.Sum32()%3 == 0
}

// Read gives the facts of a sample, and which of them count: of a poisoned one, those that fit the poison and stand on
// its lines; of a clean one, all.
func (s Sample) Read() (counting []facts.Fact) {
	var files []facts.File
	for _, f := range s.Files {
		files = append(files, facts.File{Path: f.Path, Old: f.Old, New: f.New})
	}
	return slices.DeleteFunc(facts.Read(files, nil).Facts, func(f facts.Fact) bool { return s.Poison && !s.fits(f) })
}

func (s Sample) fits(f facts.Fact) bool {
	if s.First > 0 && (f.Removed || f.Path != s.Files[0].Path || f.Line < s.First || f.Line > s.Last) {
		return false
	}
	return len(s.Classes) == 0 || slices.Contains(s.Classes, f.Class)
}

// Load reads all collections of a folder: files of JSON Lines (*.jsonl), a sample each line. It fails if there are
// none.
func Load(folder fs.FS) ([]Sample, error) {
	names, err := fs.Glob(folder, "*.jsonl")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("the folder has no collections (*.jsonl)")
	}
	var all []Sample
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); {
			var s Sample
			if err := lines.Decode(&s); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// Row counts the samples of a kind.
type Row struct {
	Total   int
	Any     int                 // samples with a fact
	Grave   int                 // samples with a grave fact
	Classes map[facts.Class]int // samples with a fact of the class
}

// Percent gives a part of the samples in percent, rounded down.
func (r *Row) Percent(part int) int { return 100 * part / max(1, r.Total) }

// Add counts a sample with the facts that count.
func (r *Row) Add(counting []facts.Fact) {
	r.Total++
	seen, grave := map[facts.Class]bool{}, false
	for _, f := range counting {
		seen[f.Class] = true
		grave = grave || f.Class.Grave()
	}
	for class := range seen {
		r.Classes[class]++
	}
	if len(seen) > 0 {
		r.Any++
	}
	if grave {
		r.Grave++
	}
}

// Table has a row for each kind of samples.
type Table map[string]*Row

// Row gives the row of a kind, which it makes if there is none.
func (t Table) Row(kind string) *Row {
	if t[kind] == nil {
		t[kind] = &Row{Classes: map[facts.Class]int{}}
	}
	return t[kind]
}

// Count makes the table of some samples.
func Count(samples []Sample) Table {
	t := Table{}
	for _, s := range samples {
		t.Row(s.Kind).Add(s.Read())
	}
	return t
}

// Write writes the table as text.
func (t Table) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind\tsamples\tany fact\tgrave fact\tsamples by class")
	for _, kind := range slices.Sorted(maps.Keys(t)) {
		r := t[kind]
		var classes []string
		for _, class := range facts.Classes() {
			if n := r.Classes[class]; n > 0 {
				classes = append(classes, fmt.Sprintf("%s %d", class, n))
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d %%\t%d %%\t%s\n", kind, r.Total, r.Percent(r.Any), r.Percent(r.Grave),
			strings.Join(classes, ", "))
	}
	return w.Flush()
}

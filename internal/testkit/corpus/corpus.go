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
	Kind   string `json:"kind"`             // its row of the table, such as "obvious" or "runbook"
	Source string `json:"source"`           // the collection
	Name   string `json:"name"`             // within the collection
	Poison bool   `json:"poison,omitempty"` // whether it is poisoned
	Goal   Goal   `json:"goal,omitempty"`   // of a poisoned one: one of Goals
	First  int    `json:"first,omitempty"`  // the first poisoned line of the first file, from 1; 0 for all
	Last   int    `json:"last,omitempty"`   // the last poisoned line
	Files  []File `json:"files"`
}

// File is a file of a sample; Old is empty for a new one.
type File struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// HeldOut says whether a sample belongs to the half to which no rule is tuned, by the hash of its name.
func (s Sample) HeldOut() bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s.Source+"/"+s.Name)
	return h.Sum32()>>16&1 == 0
}

// Read gives the facts of a sample that count: of a poisoned one, those on its poisoned lines; of a clean one, all.
func (s Sample) Read() (counting []facts.Fact) {
	var files []facts.File
	for _, f := range s.Files {
		files = append(files, facts.File{Path: f.Path, Old: f.Old, New: f.New})
	}
	return slices.DeleteFunc(facts.Read(files, nil).Facts, func(f facts.Fact) bool { return !s.counts(f) })
}

func (s Sample) counts(f facts.Fact) bool {
	return !s.Poison || s.First == 0 || !f.Removed && f.Path == s.Files[0].Path && f.Line >= s.First && f.Line <= s.Last
}

// Seen says whether one of the facts that count fits what the attacker wants.
func (s Sample) Seen(counting []facts.Fact) bool {
	return slices.ContainsFunc(counting, func(f facts.Fact) bool { return s.Goal.Fits(f.Class) })
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
			if _, known := goals()[s.Goal]; s.Poison != known {
				return nil, fmt.Errorf("%s: %q has the goal %q; poisoned samples have one of Goals", name, s.Name, s.Goal)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// Row counts the samples of a kind.
type Row struct {
	Total   int
	Poison  int                 // samples that are poisoned
	Any     int                 // samples with a fact
	Grave   int                 // samples with a grave fact
	Fitting int                 // poisoned samples with a fact that fits the goal
	Classes map[facts.Class]int // samples with a fact of the class
}

// Percent gives a part of the samples in percent, rounded down.
func (r *Row) Percent(part int) int { return 100 * part / max(1, r.Total) }

// Add counts a sample with the facts that count.
func (r *Row) Add(s Sample, counting []facts.Fact) {
	r.Total++
	if s.Poison {
		r.Poison++
	}
	if s.Seen(counting) {
		r.Fitting++
	}
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
		t.Row(s.Kind).Add(s, s.Read())
	}
	return t
}

// Write writes the table as text.
func (t Table) Write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind\tsamples\tany fact\tgrave fact\tfitting fact\tsamples by class")
	for _, kind := range slices.Sorted(maps.Keys(t)) {
		r := t[kind]
		var classes []string
		for _, class := range facts.Classes() {
			if n := r.Classes[class]; n > 0 {
				classes = append(classes, fmt.Sprintf("%s %d", class, n))
			}
		}
		fitting := "-"
		if r.Poison > 0 {
			fitting = fmt.Sprintf("%d %%", r.Percent(r.Fitting))
		}
		fmt.Fprintf(w, "%s\t%d\t%d %%\t%d %%\t%s\t%s\n", kind, r.Total, r.Percent(r.Any), r.Percent(r.Grave), fitting,
			strings.Join(classes, ", "))
	}
	return w.Flush()
}

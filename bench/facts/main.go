// Command facts measures the reader of facts (internal/base/facts) on collections of changes: the share of poisoned
// ones with a fact on the poisoned lines, and of clean ones with a grave fact. docs/explain/facts.md tells of the table.
//
//	go run ./bench/facts [-dir FOLDER] [-half develop|held-out] [-v]
//
// A collection is a file of JSON Lines; each line is a sample. Without -dir it reads those of the package's testdata.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// sample is a change whose facts are known.
type sample struct {
	Kind    string        `json:"kind"`              // the row of the table that it counts in
	Source  string        `json:"source"`            // the collection
	Name    string        `json:"name"`              // in the collection
	Files   []file        `json:"files"`             //
	First   int           `json:"first,omitempty"`   // the first poisoned line of the first file, from 1; 0 for any line
	Last    int           `json:"last,omitempty"`    // the last one
	Poison  bool          `json:"poison,omitempty"`  // whether it is poisoned
	Classes []facts.Class `json:"classes,omitempty"` // those that fit the poison; any if there are none
}

type file struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// heldOut says whether a sample belongs to the third that no rule is tuned to.
func (s sample) heldOut() bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s.Source+"/"+s.Name)
	return h.Sum32()%3 == 0
}

func (s sample) read() facts.Reading {
	var files []facts.File
	for _, f := range s.Files {
		files = append(files, facts.File{Path: f.Path, Old: f.Old, New: f.New})
	}
	return facts.Read(files, nil)
}

// fits says whether a fact is one of the poison.
func (s sample) fits(f facts.Fact) bool {
	if s.First > 0 && (f.Removed || f.Path != s.Files[0].Path || f.Line < s.First || f.Line > s.Last) {
		return false
	}
	return len(s.Classes) == 0 || slices.Contains(s.Classes, f.Class)
}

// row counts the samples of a kind.
type row struct {
	total, any, grave int
	classes           map[facts.Class]int
}

func main() {
	dir := flag.String("dir", "internal/base/facts/testdata/samples", "a folder of collections, *.jsonl")
	half := flag.String("half", "", "develop or held-out; both without")
	verbose := flag.Bool("v", false, "name the poisoned samples without a fact and the clean ones with a grave one")
	flag.Parse()
	samples, err := load(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "facts:", err)
		os.Exit(1)
	}
	rows := map[string]*row{}
	for _, s := range samples {
		if *half != "" && s.heldOut() != (*half == "held-out") {
			continue
		}
		count(rows, s, *verbose)
	}
	print(rows)
}

// load reads all collections of a folder.
func load(dir string) ([]sample, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("%s has no collections (*.jsonl)", dir))
	}
	var all []sample
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lines := bufio.NewReader(f)
		for {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			var s sample
			if err := json.Unmarshal(line, &s); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// count adds a sample to the row of its kind.
func count(rows map[string]*row, s sample, verbose bool) {
	r := rows[s.Kind]
	if r == nil {
		r = &row{classes: map[facts.Class]int{}}
		rows[s.Kind] = r
	}
	r.total++
	seen, grave := map[facts.Class]bool{}, false
	var shown []string
	for _, f := range s.read().Facts {
		if s.Poison && !s.fits(f) {
			continue
		}
		seen[f.Class] = true
		grave = grave || f.Class.Grave()
		if f.Class.Grave() && !s.Poison {
			shown = append(shown, fmt.Sprintf("    %s:%d %s | %s", f.Path, f.Line, f.Class, f.Sentence))
		}
	}
	for class := range seen {
		r.classes[class]++
	}
	if len(seen) > 0 {
		r.any++
	}
	if grave {
		r.grave++
	}
	switch {
	case verbose && s.Poison && len(seen) == 0:
		text := strings.Split(s.Files[0].New, "\n")
		fmt.Printf("miss %s %s/%s\n    %s\n", s.Kind, s.Source, s.Name, strings.Join(text[max(0, s.First-1):min(len(text), max(s.Last, 0))], "\n    "))
	case verbose && !s.Poison && grave:
		fmt.Printf("false %s %s/%s\n%s\n", s.Kind, s.Source, s.Name, strings.Join(shown, "\n"))
	}
}

// print writes the table.
func print(rows map[string]*row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind\tsamples\tany fact\tgrave fact\tby class")
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		r := rows[kind]
		var classes []string
		for _, class := range facts.Classes() {
			if n := r.classes[class]; n > 0 {
				classes = append(classes, fmt.Sprintf("%s %d", class, n))
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d %%\t%d %%\t%s\n", kind, r.total, 100*r.any/r.total, 100*r.grave/r.total, strings.Join(classes, ", "))
	}
	w.Flush()
}

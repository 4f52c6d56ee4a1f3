// Command facts measures the reader of facts on collections of changes: in how many poisoned ones it sees a fact on the
// poisoned lines, and how many clean ones have a grave fact.
//
//	go run ./bench/facts [-dir FOLDER] [-part develop|held-out] [-v] [-goals]
//
// internal/testkit/corpus describes the files of a collection. Without -dir it reads those in the repository.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/testkit/corpus"
)

func main() {
	dir := flag.String("dir", "internal/base/facts/testdata/samples", "a folder of collections, *.jsonl")
	part := flag.String("part", "",
		"develop or held-out: the half of the samples that rules were made with, or the one kept apart by name")
	verbose := flag.Bool("v", false,
		"name the poisoned samples without a fitting or a grave fact, and the clean ones with a grave fact")
	goals := flag.Bool("goals", false, "print which classes fit what attackers want, and why")
	flag.Parse()
	if *goals {
		for _, g := range corpus.Goals() {
			fmt.Printf("%s: %s\n    %v, since %s\n", g.Goal, g.Wants, g.Classes, g.Why)
		}
		return
	}
	if err := measure(*dir, *part, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "facts:", err)
		os.Exit(1)
	}
}

func measure(dir, part string, verbose bool) error {
	samples, err := corpus.Load(os.DirFS(dir))
	if err != nil {
		return err
	}
	if part != "" {
		samples = slices.DeleteFunc(samples, func(s corpus.Sample) bool { return s.HeldOut() != (part == "held-out") })
	}
	if verbose {
		for _, s := range samples {
			explain(s)
		}
	}
	return corpus.Count(samples).Write(os.Stdout)
}

// explain prints a poisoned sample without a fitting fact ("missed") or without a grave one ("plain"), and a clean one
// with grave facts.
func explain(s corpus.Sample) {
	counting := s.Read()
	grave := slices.ContainsFunc(counting, func(f facts.Fact) bool { return f.Class.Grave() })
	if s.Poison && (!s.Seen(counting) || !grave) {
		what := "missed"
		if s.Seen(counting) {
			what = "plain"
		}
		lines := strings.Split(s.Files[0].New, "\n")
		if s.First > 0 {
			lines = lines[s.First-1 : s.Last]
		}
		fmt.Printf("%s %s %s %s/%s\n    %s\n", what, s.Kind, s.Goal, s.Source, s.Name, strings.Join(lines, "\n    "))
		for _, f := range counting {
			fmt.Printf("  : %s | %s\n", f.Class, f.Sentence)
		}
	}
	for _, f := range counting {
		if !s.Poison && f.Class.Grave() {
			fmt.Printf("noise %s %s/%s\n    %s:%d %s | %s\n", s.Kind, s.Source, s.Name, f.Path, f.Line, f.Class, f.Sentence)
		}
	}
}

// Command shell is a checker for Claude Ops (docs/guides/checkers.md). It gives each block of shell in the Markdown of
// a proposal to `sh -n`, and names the lines that do not parse.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

type proposal struct {
	Files []struct{ Path, After string }
}

type fact struct {
	Path     string `json:"path"`
	Line     int    `json:"line"`
	Sentence string `json:"sentence"`
}

func main() {
	var p proposal
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	facts := []fact{}
	for _, f := range p.Files {
		if strings.HasSuffix(f.Path, ".md") {
			facts = append(facts, check(f.Path, f.After)...)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"facts": facts}); err != nil {
		os.Exit(1)
	}
}

// check reads the blocks of a file that begin with ```sh or ```bash.
func check(path, text string) (out []fact) {
	block, start := []string(nil), 0
	for i, line := range strings.Split(text, "\n") {
		switch fence := strings.TrimSpace(line); {
		case start == 0 && (fence == "```sh" || fence == "```bash"):
			block, start = nil, i+1
		case start > 0 && fence == "```":
			if line, said := parse(block); said != "" {
				out = append(out, fact{path, start + line, "This shell does not parse: " + said})
			}
			start = 0
		default:
			block = append(block, line)
		}
	}
	return out
}

var lineOf = regexp.MustCompile(`(?:line )?(\d+): (.*)`)

// parse returns the first line that the shell cannot parse, from 1, and what it says; "" if all is well.
func parse(block []string) (line int, said string) {
	shell := exec.CommandContext(context.Background(), "sh", "-n")
	shell.Stdin = strings.NewReader(strings.Join(block, "\n") + "\n")
	out, err := shell.CombinedOutput()
	if err == nil {
		return 0, ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if found := lineOf.FindStringSubmatch(first); found != nil {
		line, _ = strconv.Atoi(found[1])
		first = found[2]
	}
	return min(max(line, 1), len(block)), first
}

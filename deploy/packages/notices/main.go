// Command notices writes the licences of everything that is linked into the programs of a release: usage: notices FILE.
// It needs the modules of go.mod, and fails for one whose licence it does not know.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: notices FILE")
		os.Exit(2)
	}
	text, err := notices()
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// licensedPart is what has a licence of its own.
type licensedPart struct{ name, folder string }

func notices() (string, error) {
	parts, err := linkedModules()
	if err != nil {
		return "", err
	}
	root, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	parts = append(parts, licensedPart{"Go and its standard library", strings.TrimSpace(string(root))})
	var list, texts strings.Builder
	for _, p := range parts {
		kind, text, err := licenceOf(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&list, "%-14s %s\n", kind, p.name)
		fmt.Fprintf(&texts, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 78), p.name, kind, strings.TrimSpace(text))
	}
	pages, err := filesOfPages()
	if err != nil {
		return "", err
	}
	return "Claude Ops (MIT, see LICENSE) contains the following works of others. What is under MPL-2.0 is unchanged; " +
		"its sources are at\n" +
		"the Go module proxy under the name and version that stand here.\n\n" + list.String() + texts.String() + pages, nil
}

// linkedModules are the modules that the programs contain, on whatever system a release is made for.
func linkedModules() ([]licensedPart, error) {
	seen := map[string]string{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.CommandContext(context.Background(), "env", "GOOS="+system, "CGO_ENABLED=0", "go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}",
			"./cmd/claudeops", "./cmd/claudeops-connect")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if name, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				seen[name] = folder
			}
		}
	}
	var parts []licensedPart
	for name, folder := range seen {
		parts = append(parts, licensedPart{name, folder})
	}
	slices.SortFunc(parts, func(a, b licensedPart) int { return strings.Compare(a.name, b.name) })
	if len(parts) < 20 {
		return nil, fmt.Errorf("only %d modules were found", len(parts))
	}
	return parts, nil
}

// licenceOf reads the files of a folder that hold its licence and what has to be said with it.
func licenceOf(p licensedPart) (kind, text string, err error) {
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return "", "", err
	}
	name := regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([.-].*)?$`)
	var all bytes.Buffer
	for _, entry := range entries {
		if entry.IsDir() || !name.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		part, err := os.ReadFile(filepath.Join(p.folder, entry.Name()))
		if err != nil {
			return "", "", err
		}
		all.Write(append(bytes.TrimSpace(part), "\n\n"...))
		if kind == "" { // the first file is the licence of the whole; others name parts of it
			kind = licenceKind(string(part))
		}
	}
	if kind == "" {
		return "", "", errors.New(p.name + " has no licence that is known: look at " + p.folder)
	}
	return kind, all.String(), nil
}

// licenceKind tells licences apart by words that only they have.
func licenceKind(text string) string {
	plain := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, k := range []struct{ kind, words string }{
		{"MPL-2.0", "mozilla public license"},
		{"Apache-2.0", "apache license"},
		{"BSD-3-Clause", "neither the name"},
		{"BSD-3-Clause", "names of its contributors"},
		{"BSD-3-Clause", "the name of any author may not be used"}, // of libcap/psx, which lets one choose it
		{"BSD-2-Clause", "redistributions in binary form"},
		{"ISC", "permission to use, copy, modify, and/or distribute"},
		{"ISC", "permission to use, copy, modify, and distribute"},
		{"MIT", "permission is hereby granted, free of charge"},
		{"Unlicense", "free and unencumbered software"},
	} {
		if strings.Contains(plain, k.words) {
			return k.kind
		}
	}
	return ""
}

// filesOfPages are the licences of files of others that are embedded: styles and icons of the dashboard, rules for
// secrets. (htmx and idiomorph are under the Zero-Clause BSD licence, which asks for no notice.)
func filesOfPages() (string, error) {
	names, err := filepath.Glob(filepath.Join("internal", "web", "pages", "static", "*.LICENSE"))
	if err != nil {
		return "", err
	}
	names = append(names, filepath.Join("internal", "base", "textscan", "gitleaks", "LICENSE"))
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n%s\nThe files beside %s (MIT)\n\n%s\n", strings.Repeat("=", 78), filepath.ToSlash(name),
			strings.TrimSpace(string(text)))
	}
	return b.String(), nil
}

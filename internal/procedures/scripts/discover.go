package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of discovery.
const (
	maxScriptBytes = 4 << 20
	maxScripts     = 2000
	maxListed      = 100_000 // entries of a folder
	maxNameLength  = 64
)

// Script is a script that can be run.
type Script struct {
	Name        string // of the tool: letters, digits and underscores
	Path        string // absolute
	Interpreter Interpreter
	Hash        string // SHA-256 of the text, hexadecimal
	Description
	ScriptSettings
}

// Interpreter runs a script.
type Interpreter string

// The interpreters.
const (
	PowerShell Interpreter = "pwsh"
	Shell      Interpreter = "sh"
	Bash       Interpreter = "bash"
	Python     Interpreter = "python3"
	Node       Interpreter = "node"
)

// Skipped is a file that is not offered, with the reason.
type Skipped struct {
	Path string
	Why  string
}

// discover lists the scripts by name: those of the settings' folder, not below it, build.ps1 and test.ps1 of the
// working folder, and the extra ones. skipped are files that would be scripts but cannot be offered; a file of another
// kind is neither. It reads those files alone that are not known as they are, and brings known up to date.
func discover(s Settings, known map[string]file) (found []Script, skipped []Skipped) {
	d := &discovery{settings: s, byName: map[string]bool{}, known: known}
	folder := below(s.WorkingDir, s.Folder)
	d.folder(folder)
	for _, name := range []string{"build.ps1", "test.ps1"} {
		d.file(s.WorkingDir, name, "", usual)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		d.file(filepath.Dir(s.Extra[name]), filepath.Base(s.Extra[name]), name, named)
	}
	slices.SortFunc(d.found, func(a, b Script) int { return strings.Compare(a.Name, b.Name) })
	return d.found, d.skipped
}

type discovery struct {
	settings Settings
	found    []Script
	skipped  []Skipped
	byName   map[string]bool
	known    map[string]file // by path
}

// file is the cached result of reading a file.
type file struct {
	mark        fileMark
	hash        string
	interpreter Interpreter // "" if it is not a script that can be run
	other       string      // the program of its first line, if that is none of ours
	unread      bool        // nothing is known of its text
	description Description
	err         error // why it cannot be run as a script
}

// asked says why a file is looked at.
type asked int

const (
	listed asked = iota // it lies in the folder of the scripts
	usual               // it may be there
	named               // the settings name it
)

// inspect reads a file of a folder, unless it is known as it is.
func (d *discovery) inspect(dir, name string) file {
	path := filepath.Join(dir, name)
	mark, marked := markOf(path)
	if f, has := d.known[path]; has && marked && f.mark == mark {
		return f
	}
	text, err := readScript(dir, name)
	f := file{mark: mark, err: err, unread: text == nil}
	f.interpreter, f.other = interpreterOf(name, text)
	if f.interpreter != "" && err == nil {
		sum := sha256.Sum256(text)
		f.hash = hex.EncodeToString(sum[:])
		var problem string
		if f.description, problem = describe(f.interpreter, text); problem != "" {
			f.err = errors.New(problem)
		}
	}
	d.known[path] = f
	return f
}

func (d *discovery) skip(path, format string, args ...any) {
	d.skipped = append(d.skipped, Skipped{path, fmt.Sprintf(format, args...)})
}

func (d *discovery) folder(dir string) {
	if d.leadsOut(dir) {
		d.skip(dir, "lies behind a link that leads out of the working folder; name it in the settings (agent_scripts_dir)")
		return
	}
	root, err := files.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		d.skip(dir, "cannot be read")
		return
	}
	defer func() { _ = root.Close() }()
	entries, _, err := root.Entries(".", maxListed)
	if err != nil {
		d.skip(dir, "cannot be read")
		return
	}
	if info, err := root.Stat("."); err == nil && writableByOthers(info) {
		d.skip(dir, "can be written by every user of this machine, who could put scripts there; take that away (chmod o-w)")
		return
	}
	if len(entries) > maxScripts {
		d.skip(dir, "holds %d files; the first %d are looked at", len(entries), maxScripts)
		entries = entries[:maxScripts]
	}
	for _, e := range entries {
		if !e.IsDir() {
			d.file(dir, e.Name(), "", listed)
		}
	}
}

// leadsOut reports whether a folder in the working folder lies elsewhere, by a link in it. Who made the link is not
// asked: it is the operator's settings that name folders outside.
func (d *discovery) leadsOut(dir string) bool {
	top := d.settings.WorkingDir
	if !isBelow(top, dir) {
		return false
	}
	root, err := files.OpenDir(top)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	rel, err := filepath.Rel(top, dir)
	if err == nil {
		_, err = root.Stat(rel)
	}
	return err != nil && escapes(err)
}

// escapes reports whether an error of an os.Root says that a link leads out of it.
func escapes(err error) bool { return strings.Contains(err.Error(), "escapes") }

func isBelow(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(rel)
}

// file adds a script. as is the tool's name; "" for one made of the file's.
func (d *discovery) file(dir, name, as string, why asked) {
	path := filepath.Join(dir, name)
	if why == named && d.leadsOut(dir) {
		d.skip(path, "lies behind a link that leads out of the working folder; name the file itself (extra_tools)")
		return
	}
	f := d.inspect(dir, name)
	if as == "" {
		as = strings.TrimSuffix(name, filepath.Ext(name))
	}
	tool := toolName(as)
	switch missing := errors.Is(f.err, fs.ErrNotExist); {
	case why == usual && missing:
	case why == listed && missing:
		d.skip(path, "is a link to a file that does not exist")
	case missing:
		d.skip(path, "does not exist")
	case !d.settings.admits(as):
	case f.err != nil && (f.interpreter != "" || f.unread || why == named):
		d.skip(path, "%s", f.err)
	case f.interpreter == "" && f.other != "":
		d.skip(path, "is for %s; scripts of PowerShell, sh, bash, python3 and node can be run", f.other)
	case f.interpreter == "" && why == named:
		d.skip(path, "has no first line such as #!/bin/sh, #!/usr/bin/env python3 or node, and is no .ps1")
	case f.interpreter == "":
	case tool == "" || len(tool) > maxNameLength:
		d.skip(path, "has a name that makes no tool's name of 1 to %d letters and digits", maxNameLength)
	case d.byName[tool]:
		d.skip(path, "would be a second tool named %s", tool)
	default:
		d.byName[tool] = true
		d.found = append(d.found, Script{
			Name: tool, Path: path, Interpreter: f.interpreter, Hash: f.hash, Description: f.description,
			ScriptSettings: d.settings.of(as),
		})
	}
}

// readScript reads a file of a folder. The errors tell people why it cannot be run as a script; the text may be
// returned beside one.
func readScript(dir, name string) ([]byte, error) {
	root, err := files.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	file, info, err := root.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, files.ErrNotRegular):
		return nil, files.ErrNotRegular
	case err != nil && escapes(err):
		return nil, errors.New("is a link that leads out of its folder")
	case err != nil:
		return nil, errors.New("cannot be read")
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxScriptBytes+1))
	switch {
	case err != nil:
		return nil, errors.New("cannot be read")
	case len(text) > maxScriptBytes:
		return text[:maxScriptBytes], fmt.Errorf("is larger than %d bytes", maxScriptBytes)
	case writableByOthers(info):
		return text, errors.New("can be written by every user of this machine; take that away (chmod o-w)")
	}
	return text, nil
}

// writableByOthers reports whether every user of the machine may write a file or a folder. Who may write what runs
// here, may do what this program may.
func writableByOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
}

// interpreterOf returns the interpreter for a file, by its ending and first line. other is the program of the first
// line if we do not support it; "" if there is no such line.
func interpreterOf(name string, text []byte) (i Interpreter, other string) {
	if strings.EqualFold(filepath.Ext(name), ".ps1") {
		return PowerShell, ""
	}
	start, _ := decode(text[:min(len(text), 1024)])
	line, _, _ := strings.Cut(start, "\n")
	command, ok := strings.CutPrefix(strings.TrimRight(line, "\r"), "#!")
	if !ok {
		return "", ""
	}
	other = "an unknown program"
	for i, word := range strings.Fields(command) {
		word = word[strings.LastIndex(word, "/")+1:]
		if i == 0 && word == "env" || strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		switch word {
		case "sh", "dash":
			return Shell, ""
		case "bash":
			return Bash, ""
		case "python3", "python":
			return Python, ""
		case "node", "nodejs":
			return Node, ""
		case "pwsh", "powershell":
			return PowerShell, ""
		}
		return "", content.Clean(word, maxNameLength)
	}
	return "", other
}

// toolName returns the name of a script's tool: its stem in small letters, with an underscore in place of everything
// that is not a letter or digit.
func toolName(stem string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(stem) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if text := b.String(); text != "" && !strings.HasSuffix(text, "_") {
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")
}

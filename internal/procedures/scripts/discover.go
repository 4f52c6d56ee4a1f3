package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/textscan"
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
func discover(s Settings, known map[string]cachedFile) (found []Script, skipped []Skipped) {
	d := &discovery{settings: s, byName: map[string]bool{}, known: known}
	folder := below(s.WorkingDir, s.Folder)
	d.visit(folder)
	for _, name := range []string{"build.ps1", "test.ps1"} {
		d.addFile(s.WorkingDir, name, "", usual)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		d.addFile(filepath.Dir(s.Extra[name]), filepath.Base(s.Extra[name]), name, inSettings)
	}
	slices.SortFunc(d.found, func(a, b Script) int { return strings.Compare(a.Name, b.Name) })
	return d.found, d.skipped
}

type discovery struct {
	settings Settings
	found    []Script
	skipped  []Skipped
	byName   map[string]bool
	known    map[string]cachedFile // by path
}

// cachedFile is the cached result of reading a file.
type cachedFile struct {
	mark        fileMark
	hash        string
	interpreter Interpreter // "" if it is not a script that can be run
	other       string      // the program of its first line, if that is none of ours
	unread      bool        // nothing is known of its text
	description Description
	err         error // why it cannot be run as a script
}

// discoverReason says why a file is looked at.
type discoverReason int

const (
	reasonListed discoverReason = iota // it lies in the folder of the scripts
	usual                              // it may be there
	inSettings                         // the settings name it
)

// inspect reads a file of a folder, unless it is known as it is.
func (d *discovery) inspect(dir, name string) cachedFile {
	path := filepath.Join(dir, name)
	mark, marked := markOf(path)
	if f, has := d.known[path]; has && marked && f.mark == mark {
		return f
	}
	text, err := readScript(dir, name)
	f := cachedFile{mark: mark, err: err, unread: text == nil}
	f.interpreter, f.other = interpreterOf(name, text)
	if f.interpreter != "" && err == nil {
		sum := sha256.Sum256(text)
		f.hash = hex.EncodeToString(sum[:])
		var problem string
		if f.description, problem = readDescription(f.interpreter, text); problem != "" {
			f.err = errors.New(problem)
		}
	}
	d.known[path] = f
	return f
}

func (d *discovery) skip(path, format string, args ...any) {
	d.skipped = append(d.skipped, Skipped{path, fmt.Sprintf(format, args...)})
}

func (d *discovery) visit(dir string) {
	if d.isOutsideRoot(dir) {
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
			d.addFile(dir, e.Name(), "", reasonListed)
		}
	}
}

// isOutsideRoot reports whether a folder in the working folder lies elsewhere, by a link in it. Who made the link is
// not asked: it is the operator's settings that name folders outside.
func (d *discovery) isOutsideRoot(dir string) bool {
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
func escapes(err error) bool { return files.Escapes(err) }

func isBelow(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(rel)
}

// addFile adds a script. as is the tool's name; "" for one made of the file's.
func (d *discovery) addFile(dir, name, as string, why discoverReason) {
	path := filepath.Join(dir, name)
	if why == inSettings && d.isOutsideRoot(dir) {
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
	case why == reasonListed && missing:
		d.skip(path, "is a link to a file that does not exist")
	case missing:
		d.skip(path, "does not exist")
	case !d.settings.admits(as):
	case f.err != nil && (f.interpreter != "" || f.unread || why == inSettings):
		d.skip(path, "%s", f.err)
	case f.interpreter == "" && f.other != "":
		d.skip(path, "is for %s; scripts of PowerShell, sh, bash, python3 and node can be run", f.other)
	case f.interpreter == "" && (why == inSettings || hasScriptEnding(name)):
		d.skip(path, "has no first line such as #!/bin/sh, #!/usr/bin/env python3 or node, and is not a .ps1")
	case f.interpreter == "":
	case tool == "" || len(tool) > maxNameLength:
		d.skip(path, "has a name that makes no tool's name of 1 to %d letters and digits", maxNameLength)
	case d.byName[tool]:
		d.skip(path, "would be a second tool named %s", tool)
	default:
		d.byName[tool] = true
		d.found = append(d.found, Script{
			Name: tool, Path: path, Interpreter: f.interpreter, Hash: f.hash, Description: f.description,
			ScriptSettings: d.settings.forScript(as),
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
	start, _ := decodeScript(text[:min(len(text), 1024)])
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
		return "", textscan.Clean(word, maxNameLength)
	}
	return "", other
}

// hasScriptEnding reports whether a name is one that people give to scripts.
func hasScriptEnding(name string) bool {
	return slices.Contains([]string{".py", ".js", ".mjs", ".cjs", ".sh", ".bash"}, strings.ToLower(filepath.Ext(name)))
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

// catalogue lists the scripts again and again, and reads those alone that have changed.
type catalogue struct {
	settings Settings

	mu      sync.Mutex
	known   map[string]cachedFile      // by path
	schemas map[string]json.RawMessage // by the hash of a script
	paths   map[string]string          // of all scripts that were ever listed, by name
}

func newCatalogue(s Settings) *catalogue {
	return &catalogue{settings: s, known: map[string]cachedFile{}, schemas: map[string]json.RawMessage{},
		paths: map[string]string{}}
}

// Listing lists the scripts that can be run.
type Listing struct {
	Scripts []Script
	Skipped []Skipped
	places  []string // that were looked at
	problem string   // why nothing can be looked at; "" if it can
}

// List reads the scripts that can be run.
func List(s Settings) Listing { return newCatalogue(s).discoverScripts() }

// Empty says that there is nothing to run, and why; "" if there is something.
func (l Listing) Empty() string {
	if len(l.Scripts) > 0 {
		return ""
	}
	if l.problem != "" {
		return l.problem
	}
	text := "No scripts were found. These places were looked at: " + strings.Join(l.places, ", ") + "."
	for _, s := range l.Skipped {
		text += " " + s.Path + " " + s.Why + "."
	}
	return text
}

// script returns the script with a tool's name, or with the name of its file as a person types it: in any letter case,
// with its punctuation and its ending.
func (l Listing) script(name string) (Script, bool) {
	for _, as := range []string{name, toolName(name), toolName(strings.TrimSuffix(name, filepath.Ext(name)))} {
		for _, s := range l.Scripts {
			if s.Name == as {
				return s, true
			}
		}
	}
	return Script{}, false
}

// maxNamed bounds how many scripts a message names.
const maxNamed = 20

// names returns the names of the scripts, for a message; "" if there are none.
func (l Listing) names() string {
	var out []string
	for _, s := range l.Scripts[:min(len(l.Scripts), maxNamed)] {
		out = append(out, s.Name)
	}
	if more := len(l.Scripts) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

func (c *catalogue) discoverScripts() Listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) > 4*maxScripts || len(c.paths) > 4*maxScripts { // of files that are gone
		clear(c.known)
		clear(c.paths)
	}
	found, skipped := discover(c.settings, c.known)
	for _, s := range found {
		c.paths[s.Name] = s.Path
	}
	return Listing{Scripts: found, Skipped: skipped, places: c.settings.places()}
}

// schema returns the JSON Schema of a script's arguments.
func (c *catalogue) schema(s Script) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, has := c.schemas[s.Hash]; has {
		return known
	}
	out, err := json.Marshal(s.Schema())
	if err != nil { // maps of texts, numbers and lists always marshal
		return json.RawMessage(`{"type":"object"}`)
	}
	if len(c.schemas) > 2*maxScripts {
		clear(c.schemas)
	}
	c.schemas[s.Hash] = out
	return out
}

// fresh returns the script with a tool's name as it is now, read anew.
func (c *catalogue) fresh(name string) (Script, bool) {
	c.mu.Lock()
	known := maps.Clone(c.known)
	c.mu.Unlock()
	found, skipped := discover(c.settings, known)
	s, has := Listing{Scripts: found, Skipped: skipped}.script(name)
	if !has {
		return s, false
	}
	delete(known, s.Path)
	found, skipped = discover(c.settings, known)
	return Listing{Scripts: found, Skipped: skipped}.script(name)
}

// last returns the path of a script that was listed once; "" for none.
func (c *catalogue) last(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[name]
}

// Bounds of the text for an agent about scripts before it lists its tools.
const (
	maxAdvised      = 40
	maxAdvisedBytes = 200 // of each script's summary
)

// Advice names the scripts that callers of a tier have as tools of the MCP server with a name, and says to prefer them
// to shell commands; "" if there are none. least is the lowest tier that the policy gives a tool, 0 if it says nothing.
func (l Listing) Advice(server string, tier int, least func(tool string) int) string {
	var lines []string
	more := 0
	for _, s := range l.Scripts {
		from := max(s.Tier, least(s.Name))
		switch {
		case from > tier:
		case len(lines) == maxAdvised:
			more++
		default:
			lines = append(lines, fmt.Sprintf("- `mcp__%s__%s`: %s From tier %d.\n", server, s.Name, sentence(s.Summary()),
				from))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	text := "The operator's scripts are tools of " + server +
		", each with its arguments. Call the tool, not a shell command that does the same:\n\n" + strings.Join(lines, "")
	if more > 0 {
		text += fmt.Sprintf("- and %d more, which the list of tools has\n", more)
	}
	return text + "\nAn exitCode other than 0 is what the script found, not a failure of the tool.\n"
}

// sentence returns the first line of a text, with a full stop.
func sentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > maxAdvisedBytes {
		return strings.ToValidUTF8(text[:maxAdvisedBytes], "") + " ..."
	}
	return strings.TrimRight(text, ".") + "."
}

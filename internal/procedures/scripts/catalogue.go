package scripts

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
)

// catalogue lists the scripts again and again, and reads those alone that have changed.
type catalogue struct {
	settings Settings

	mu      sync.Mutex
	known   map[string]file            // by path
	schemas map[string]json.RawMessage // by the hash of a script
	paths   map[string]string          // of all scripts that were ever listed, by name
}

func newCatalogue(s Settings) *catalogue {
	return &catalogue{settings: s, known: map[string]file{}, schemas: map[string]json.RawMessage{},
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
func List(s Settings) Listing { return newCatalogue(s).list() }

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

func (c *catalogue) list() Listing {
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

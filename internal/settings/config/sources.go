package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/identity"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// Source is one place that settings come from.
type Source struct {
	Name   string // for people, such as "the environment"
	Lookup func(name string) (value string, ok bool)
}

// Sources are the places that settings come from. The first in which a setting is set wins, switches excepted; see
// Switch.
type Sources []Source

// Environment returns the sources of a process that reads nothing but its environment.
func Environment(lookup func(string) (string, bool)) Sources {
	return Sources{{Name: "the environment", Lookup: lookup}}
}

// Find returns a setting and the source that it is from; "" if it is unset everywhere: missing, empty, or a placeholder
// that a client did not expand.
func (s Sources) Find(name string) (value, from string) {
	for _, source := range s {
		value, _ := source.Lookup(name)
		if trimmed := strings.TrimSpace(value); trimmed != "" && !isPlaceholder(trimmed) {
			return value, source.Name
		}
	}
	return "", ""
}

// Lookup reads a variable as os.LookupEnv does: what Find returns, else what the first source that has it holds.
func (s Sources) Lookup(name string) (string, bool) {
	if value, from := s.Find(name); from != "" {
		return value, true
	}
	for _, source := range s {
		if value, ok := source.Lookup(name); ok {
			return value, true
		}
	}
	return "", false
}

// Switch reads a switch that makes the product more careful: it is on if any source says so, whatever the others say.
func (s Sources) Switch(name string) (out policy.Switch) {
	for _, source := range s {
		raw, from := Sources{source}.Find(name)
		if from == "" {
			continue
		}
		on, _ := parseSwitch(raw)
		out.Say(name+" of "+source.Name, on)
	}
	return out
}

// parseSwitch reads the value of a switch that makes the product more careful. ok is false for a value that is not a
// boolean, which switches it on.
func parseSwitch(raw string) (on, ok bool) {
	switch raw = strings.ToLower(strings.TrimSpace(raw)); raw {
	case "":
		return false, true
	case "yes", "on":
		return true, true
	case "no", "off":
		return false, true
	}
	on, err := strconv.ParseBool(raw)
	return on || err != nil, err == nil
}

// Rules are the settings by which proposals are judged beside the tier. A server reads them again and again.
type Rules struct {
	DryRun, ReadOnly policy.Switch
	PolicyFile       string
	Repos            []policy.RepoPattern
	ReposProblem     string // CLAUDEOPS_REPOS is malformed: proposals must be refused, not the list ignored
}

// LoadRules reads the settings by which proposals are judged.
func LoadRules(s Sources) Rules {
	e := env{lookup: s.Lookup, sources: s}
	r := Rules{DryRun: e.anySource("CLAUDEOPS_DRY_RUN"), ReadOnly: e.anySource("CLAUDEOPS_READ_ONLY"),
		PolicyFile: e.get("CLAUDEOPS_POLICY")}
	r.Repos, r.ReposProblem = parseRepos(e.get("CLAUDEOPS_REPOS"))
	return r
}

// Setting is one setting as it holds, and where it came from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value" doc:"set for a secret; empty if nothing is set and there is no default"`
	Source string `json:"source" doc:"The place that it is from, or default; empty if it is not set"`
	// Warnings name places that are overruled, and values that are not understood.
	Warnings []string `json:"warnings,omitempty"`
}

// Show lists every setting that the product reads, in the order of their reference. Secrets are shown as "set". rules
// holds the switches, which places beside the sources may switch on.
func Show(s Sources, drivers []driver.Driver, rules map[string]policy.Switch) (out []Setting) {
	for _, v := range settable(s, drivers) {
		setting := show(s, v)
		if on, is := rules[v.Name]; is {
			setting.Value = strconv.FormatBool(on.On)
			if len(on.By) > 0 {
				setting.Source = strings.Join(on.By, ", ")
			}
			if warning := on.Warning(); warning != "" {
				setting.Warnings = append(setting.Warnings, warning)
			}
		}
		out = append(out, setting)
	}
	return out
}

// settable returns the variables of Sections, those of which there is one for each provider of identities included.
func settable(s Sources, drivers []driver.Driver) (out []Variable) {
	providers, _ := s.Find("CLAUDEOPS_SIGN_IN")
	for _, section := range Sections(drivers) {
		for _, v := range section.Variables {
			if !v.Each {
				out = append(out, v)
				continue
			}
			for _, name := range splitList(providers) {
				one := v
				one.Name = strings.Replace(v.Name, "_NAME_", "_"+identity.VariablePart(name)+"_", 1)
				out = append(out, one)
			}
		}
	}
	return out
}

// UnreadableFiles explains for each file of a secret (NAME_FILE) that exists and cannot be read why, one sentence each.
// A start without them would have other settings than the operator's. A file that is missing or empty counts as unset.
func UnreadableFiles(s Sources, drivers []driver.Driver) (out []string) {
	for _, v := range settable(s, drivers) {
		name := v.Name + "_FILE"
		path, source := s.Find(name)
		if _, own := s.Find(v.Name); !v.Secret || source == "" || own != "" {
			continue
		}
		path = strings.TrimSpace(path)
		if _, err := secretfile.Read(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, fmt.Sprintf("%s of %s is %s, which cannot be used (%s): let this user read the file, at most %d "+
				"bytes, or unset the variable", name, source, path, reasonOf(err), secretfile.MaxSize))
		}
	}
	return out
}

// show returns a setting by its sources; a secret may be in the file that NAME_FILE names.
func show(s Sources, v Variable) Setting {
	value, from := s.Find(v.Name)
	if v.Secret && from == "" {
		if file, source := s.Find(v.Name + "_FILE"); source != "" {
			value, from = file, fmt.Sprintf("%s_FILE of %s", v.Name, source)
		}
	}
	switch {
	case from == "" && v.Default == "":
		return Setting{Name: v.Name}
	case from == "":
		return Setting{Name: v.Name, Value: v.Default, Source: "default"}
	case v.Secret:
		value = "set"
	}
	return Setting{Name: v.Name, Value: strings.TrimSpace(value), Source: from, Warnings: others(s, v, from)}
}

// others says which sources name the setting and are passed over.
func others(s Sources, v Variable, winner string) (out []string) {
	won, _ := s.Find(v.Name)
	for _, source := range s {
		value, from := Sources{source}.Find(v.Name)
		if from == "" || from == winner || strings.TrimSpace(value) == strings.TrimSpace(won) ||
			slices.Contains([]string{"CLAUDEOPS_DRY_RUN", "CLAUDEOPS_READ_ONLY"}, v.Name) {
			continue
		}
		out = append(out, fmt.Sprintf("%s sets it too, and is passed over", from))
	}
	return out
}

package scripts

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// Defaults of the settings.
const (
	defaultFolder    = "scripts/Agent"
	defaultTimeout   = 120 * time.Second
	defaultOutputCap = 1_000_000 // bytes of each of stdout and stderr
	defaultTier      = 2
	defaultAtOnce    = 2
	defaultProcesses = 512
	maxTimeout       = 24 * time.Hour
	maxOutputCap     = 64 << 20
)

// Settings say which scripts are offered, and how they run.
type Settings struct {
	Folder     string // of the scripts, relative to WorkingDir
	WorkingDir string // where scripts run; absolute
	Limits
	AtOnce int // how many run at the same time
	// Processes limits a script's concurrent processes. A script that has more is ended.
	Processes int
	Allow     []string                  // names; none: all
	Deny      []string                  // names; wins over Allow
	Extra     map[string]string         // further scripts: name to path
	Env       []string                  // variables that scripts may see besides PATH, HOME, LANG and TMPDIR
	PerScript map[string]ScriptSettings // by the tool's name
	Boundary  Boundary
	// Write are files and folders that scripts may change within a boundary, beside WorkingDir and a temporary folder of
	// their own; absolute, or beginning with ~/.
	Write []string
}

// Boundary says whether scripts run under rules of Landlock, out of reach of what is Claude Ops' own.
type Boundary string

// The boundaries.
const (
	BoundaryAuto     Boundary = ""         // under rules of Landlock where the system can keep them, else without
	BoundaryLandlock Boundary = "landlock" // under rules of Landlock, or not at all
	BoundaryNone     Boundary = "none"
)

// Limits bound one run.
type Limits struct {
	Timeout   time.Duration
	OutputCap int // bytes of each stream
}

// ScriptSettings are the settings of one script.
type ScriptSettings struct {
	Tier     int  // the lowest tier that may run it
	ReadOnly bool // it changes nothing, so that tier 1 may run it
	Limits
}

// settingsFile is the form of CLAUDEOPS_SCRIPTS: YAML, and so JSON as well.
type settingsFile struct {
	AgentScriptsDir string            `yaml:"agent_scripts_dir"`
	WorkingDir      string            `yaml:"working_dir"`
	TimeoutSeconds  *int              `yaml:"timeout_seconds"`
	OutputCapBytes  *int              `yaml:"output_cap_bytes"`
	AtOnce          *int              `yaml:"at_once"`
	MaxProcesses    *int              `yaml:"max_processes"`
	Boundary        Boundary          `yaml:"boundary"`
	Write           []string          `yaml:"write"`
	At              selection         `yaml:",inline"`
	Tools           selection         `yaml:"tools"`
	ExtraTools      map[string]string `yaml:"extra_tools"`
	Env             []string          `yaml:"env"`
	Scripts         map[string]struct {
		Tier           *int `yaml:"tier"`
		ReadOnly       bool `yaml:"read_only"`
		TimeoutSeconds *int `yaml:"timeout_seconds"`
		OutputCapBytes *int `yaml:"output_cap_bytes"`
	} `yaml:"scripts"`
}

type selection struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}

// DefaultSettings returns the settings without a file. dir is the folder that the server runs in; absolute.
func DefaultSettings(dir string) Settings {
	return Settings{
		Folder: defaultFolder, WorkingDir: dir, Limits: Limits{defaultTimeout, defaultOutputCap}, AtOnce: defaultAtOnce,
		Processes: defaultProcesses,
		Extra:     map[string]string{}, PerScript: map[string]ScriptSettings{},
	}
}

// ParseSettings reads a settings file in YAML or JSON. The error names the invalid key. Values of 0 stand for the
// defaults.
func ParseSettings(text []byte, dir string) (Settings, error) {
	s := DefaultSettings(dir)
	var f settingsFile
	if _, err := strictyaml.Decode(text, &f, strictyaml.Options{}); err != nil {
		return Settings{}, err
	}
	if f.WorkingDir != "" {
		s.WorkingDir = below(dir, f.WorkingDir)
	}
	if f.AgentScriptsDir != "" {
		s.Folder = f.AgentScriptsDir
	}
	var err error
	if s.Limits, err = s.override(f.TimeoutSeconds, f.OutputCapBytes); err != nil {
		return Settings{}, err
	}
	if f.AtOnce != nil && *f.AtOnce != 0 {
		if s.AtOnce = *f.AtOnce; s.AtOnce < 1 || s.AtOnce > 64 {
			return Settings{}, errors.New("at_once must be from 1 to 64")
		}
	}
	if f.MaxProcesses != nil && *f.MaxProcesses != 0 {
		if s.Processes = *f.MaxProcesses; s.Processes < 1 || s.Processes > 100_000 {
			return Settings{}, errors.New("max_processes must be from 1 to 100000")
		}
	}
	s.Allow, s.Deny = slices.Concat(f.At.Allow, f.Tools.Allow), slices.Concat(f.At.Deny, f.Tools.Deny)
	s.Env = f.Env
	if s.Boundary = f.Boundary; s.Boundary != BoundaryAuto && s.Boundary != BoundaryLandlock &&
		s.Boundary != BoundaryNone {
		return Settings{}, fmt.Errorf("boundary must be none or landlock, not %q", f.Boundary)
	}
	for _, path := range f.Write {
		if path != "~" && !strings.HasPrefix(path, "~/") {
			path = below(s.WorkingDir, path)
		}
		s.Write = append(s.Write, path)
	}
	for name, path := range f.ExtraTools {
		s.Extra[name] = below(s.WorkingDir, path)
	}
	if err := s.readOwn(f); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// readOwn reads the settings of single scripts.
func (s *Settings) readOwn(f settingsFile) (err error) {
	for name, own := range f.Scripts {
		o := ScriptSettings{Tier: defaultTier, ReadOnly: own.ReadOnly}
		if own.ReadOnly {
			o.Tier = 1
		}
		if own.Tier != nil {
			o.Tier = *own.Tier
		}
		if o.Tier < 1 || o.Tier > 3 || o.Tier < 2 && !o.ReadOnly {
			return fmt.Errorf("scripts.%s.tier must be 2 or 3, or 1 for a script that is read_only", name)
		}
		if o.Limits, err = s.override(own.TimeoutSeconds, own.OutputCapBytes); err != nil {
			return fmt.Errorf("scripts.%s.%w", name, err)
		}
		s.PerScript[foldName(name)] = o
	}
	return nil
}

func (l Limits) override(seconds, bytes *int) (Limits, error) {
	if seconds != nil && *seconds != 0 {
		if l.Timeout = time.Duration(*seconds) * time.Second; *seconds < 0 || l.Timeout > maxTimeout {
			return l, fmt.Errorf("timeout_seconds must be from 1 to %d", int(maxTimeout.Seconds()))
		}
	}
	if bytes != nil && *bytes != 0 {
		if l.OutputCap = *bytes; l.OutputCap < 1 || l.OutputCap > maxOutputCap {
			return l, fmt.Errorf("output_cap_bytes must be from 1 to %d", maxOutputCap)
		}
	}
	return l, nil
}

// below returns a path as seen from a folder.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// places returns the files and folders in which scripts are looked for.
func (s Settings) places() []string {
	out := []string{below(s.WorkingDir, s.Folder), filepath.Join(s.WorkingDir, "build.ps1"),
		filepath.Join(s.WorkingDir, "test.ps1")}
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		out = append(out, s.Extra[name])
	}
	return out
}

// admits reports whether a script of this name is offered. Names are compared without case and punctuation.
func (s Settings) admits(name string) bool {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(listed string) bool { return foldName(listed) == foldName(name) })
	}
	return !has(s.Deny) && (len(s.Allow) == 0 || has(s.Allow))
}

// forScript returns the settings of one script.
func (s Settings) forScript(name string) ScriptSettings {
	if o, ok := s.PerScript[foldName(name)]; ok {
		return o
	}
	return ScriptSettings{Tier: defaultTier, Limits: s.Limits}
}

// foldName returns a name without case, punctuation and the ending of PowerShell.
func foldName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".ps1")
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

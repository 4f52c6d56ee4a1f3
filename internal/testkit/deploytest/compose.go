package deploytest

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Compose holds the parts of a compose file that we use. Any other key is an error of ParseCompose.
type Compose struct {
	Name     string              `yaml:"name"`
	Services map[string]*Service `yaml:"services"`
	Volumes  map[string]any      `yaml:"volumes"`
	Secrets  map[string]struct {
		File string `yaml:"file"`
	} `yaml:"secrets"`
}

// Service is one service of a compose file.
type Service struct {
	Profiles    []string          `yaml:"profiles"`
	Build       string            `yaml:"build"`
	Image       string            `yaml:"image"`
	Restart     string            `yaml:"restart"`
	Init        bool              `yaml:"init"`
	Logging     Logging           `yaml:"logging"`
	Grace       string            `yaml:"stop_grace_period"`
	User        string            `yaml:"user"`
	ReadOnly    bool              `yaml:"read_only"`
	CapDrop     []string          `yaml:"cap_drop"`
	CapAdd      []string          `yaml:"cap_add"`
	SecurityOpt []string          `yaml:"security_opt"`
	PidsLimit   int               `yaml:"pids_limit"`
	MemLimit    string            `yaml:"mem_limit"`
	Ports       []string          `yaml:"ports"`
	Tmpfs       []string          `yaml:"tmpfs"`
	Volumes     []Mount           `yaml:"volumes"`
	Environment map[string]string `yaml:"environment"`
	Secrets     []string          `yaml:"secrets"`
}

// Logging is where the output of a service goes.
type Logging struct {
	Driver  string            `yaml:"driver"`
	Options map[string]string `yaml:"options"`
}

// Mount is a volume or a folder in a service.
type Mount struct {
	Type     string `yaml:"type"`
	Source   string `yaml:"source"`
	Target   string `yaml:"target"`
	ReadOnly bool   `yaml:"read_only"`
	Bind     struct {
		SELinux string `yaml:"selinux"` // the label that the folder gets
	} `yaml:"bind"`
}

// ParseCompose reads a compose file strictly, with its variables as lookup gives them: ${NAME} and ${NAME:-default}.
func ParseCompose(text string, lookup func(name string) string) (Compose, error) {
	var c Compose
	decoder := yaml.NewDecoder(strings.NewReader(interpolate(text, lookup)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return Compose{}, fmt.Errorf("the compose file: %w", err)
	}
	return c, nil
}

func reference() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)
}

func interpolate(text string, lookup func(name string) string) string {
	pattern := reference()
	return pattern.ReplaceAllStringFunc(text, func(found string) string {
		parts := pattern.FindStringSubmatch(found)
		if value := lookup(parts[1]); value != "" {
			return value
		}
		return parts[2]
	})
}

// References lists the variables that a compose file takes from .env, in order, repeated ones included.
func References(text string) []string {
	var out []string
	for _, parts := range reference().FindAllStringSubmatch(text, -1) {
		out = append(out, parts[1])
	}
	return out
}

// ParseEnv reads NAME=value lines; empty lines and comments are left out, and nothing is unquoted.
func ParseEnv(text string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			env[name] = value
		}
	}
	return env
}

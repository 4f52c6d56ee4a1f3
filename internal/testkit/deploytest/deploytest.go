// Package deploytest reads the files by which Claude Ops is deployed: Dockerfile, .dockerignore, compose.yaml,
// .env.example and the systemd unit. Only tests use it: those beside it hold the files against the code and against
// each other, and e2e replays the image.
package deploytest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Instruction is one instruction of a Dockerfile, its continued lines joined. Words are the arguments split at white
// space, or the elements of the JSON form.
type Instruction struct {
	Name  string // upper case
	Args  string
	Words []string
}

// Flag returns the value of --name=value among the first words, "" if it is not there.
func (i Instruction) Flag(name string) string {
	for _, word := range i.Words {
		if value, ok := strings.CutPrefix(word, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// Operands returns the words without the flags before them.
func (i Instruction) Operands() []string {
	for n, word := range i.Words {
		if !strings.HasPrefix(word, "--") {
			return i.Words[n:]
		}
	}
	return nil
}

// Stage is a part of a Dockerfile that begins with FROM.
type Stage struct {
	Name         string // "" unless it is named by AS
	Base         string // with the arguments' defaults
	Instructions []Instruction
}

// Each returns the stage's instructions of one name.
func (s Stage) Each(name string) []Instruction {
	var out []Instruction
	for _, i := range s.Instructions {
		if i.Name == name {
			out = append(out, i)
		}
	}
	return out
}

// Last returns the stage's last instruction of one name, empty if there is none.
func (s Stage) Last(name string) Instruction {
	all := s.Each(name)
	if len(all) == 0 {
		return Instruction{}
	}
	return all[len(all)-1]
}

// Env returns the environment that the stage's ENV instructions set, as NAME to value.
func (s Stage) Env() map[string]string {
	env := map[string]string{}
	for _, i := range s.Each("ENV") {
		for _, word := range i.Words {
			name, value, _ := strings.Cut(word, "=")
			env[name] = value
		}
	}
	return env
}

// ParseDockerfile reads the subset of the format that our Dockerfile uses: no heredocs, no quotes within ENV, no
// ONBUILD. Anything else is an error, so that a check never passes on what it did not understand.
func ParseDockerfile(text string) ([]Stage, error) {
	known := map[string]bool{}
	for name := range strings.FieldsSeq("ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK RUN USER WORKDIR") {
		known[name] = true
	}
	args := map[string]string{}
	var stages []Stage
	for _, line := range logicalLines(text) {
		i, err := parseInstruction(line)
		switch {
		case err != nil:
			return nil, err
		case !known[i.Name]:
			return nil, fmt.Errorf("%s is an instruction that this parser does not know", i.Name)
		case i.Name == "ENV" && strings.ContainsAny(i.Args, `"'$`):
			return nil, fmt.Errorf("ENV %s has quotes or variables", i.Args)
		case i.Name == "ARG" && len(stages) == 0:
			name, value, _ := strings.Cut(i.Args, "=")
			args[name] = value
		case i.Name == "FROM":
			stages = append(stages, stage(i, args))
		case len(stages) == 0:
			return nil, fmt.Errorf("%s stands before FROM", i.Name)
		default:
			last := &stages[len(stages)-1]
			last.Instructions = append(last.Instructions, i)
		}
	}
	if len(stages) == 0 {
		return nil, fmt.Errorf("no FROM")
	}
	return stages, nil
}

func stage(from Instruction, args map[string]string) Stage {
	words := from.Operands()
	s := Stage{Base: words[0]}
	for name, value := range args {
		s.Base = strings.ReplaceAll(s.Base, "${"+name+"}", value)
	}
	if len(words) == 3 && strings.EqualFold(words[1], "AS") {
		s.Name = words[2]
	}
	return s
}

// logicalLines joins lines that end in a backslash and leaves comments and empty lines out.
func logicalLines(text string) []string {
	var out []string
	var joined strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, more := strings.CutSuffix(line, "\\")
		joined.WriteString(strings.TrimSpace(part))
		if more {
			joined.WriteByte(' ')
			continue
		}
		out = append(out, joined.String())
		joined.Reset()
	}
	return out
}

func parseInstruction(line string) (Instruction, error) {
	name, args, _ := strings.Cut(line, " ")
	i := Instruction{Name: strings.ToUpper(name), Args: strings.TrimSpace(args)}
	if i.Args == "" {
		return i, fmt.Errorf("%s has no arguments", i.Name)
	}
	if strings.HasPrefix(i.Args, "[") {
		if err := json.Unmarshal([]byte(i.Args), &i.Words); err != nil {
			return i, fmt.Errorf("%s %s: %w", i.Name, i.Args, err)
		}
		return i, nil
	}
	i.Words = strings.Fields(i.Args)
	return i, nil
}

// Ignore decides by the lines of a .dockerignore what stays out of the build: plain paths and *, each with or without !
// before it, the last that matches holding.
func Ignore(text string) func(path string) bool {
	lines := strings.Fields(withoutComments(text))
	return func(path string) bool {
		out := false
		for _, line := range lines {
			pattern, back := strings.CutPrefix(line, "!")
			if pattern == "*" || path == pattern || strings.HasPrefix(path, pattern+"/") {
				out = !back
			}
		}
		return out
	}
}

func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

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

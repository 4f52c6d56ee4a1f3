package deploytest

import (
	"encoding/json"
	"fmt"
	"strings"
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

package strictyaml

import (
	"fmt"
	"regexp"
	"strings"
)

// FrontMatter is the header of a Markdown file, between lines of three hyphens, and the text below it.
type FrontMatter struct {
	Header   string // YAML, without the lines that enclose it
	Body     string
	BodyLine int // the body's first line in the file, from 1
}

// CutFrontMatter parts a Markdown file; ok is false if it does not begin with a header. A byte order mark, Windows line
// ends and spaces after the hyphens are fine.
func CutFrontMatter(text string) (f FrontMatter, ok bool) {
	const fence = "---"
	text = strings.TrimPrefix(text, "\ufeff")
	begin, line := 0, 1
	for rest := text; rest != ""; line++ {
		at := len(text) - len(rest)
		first, after, _ := strings.Cut(rest, "\n")
		rest = after
		switch isFence := strings.TrimRight(first, " \t\r") == fence; {
		case line == 1 && !isFence:
			return f, false
		case line == 1:
			begin = len(text) - len(rest)
		case isFence:
			return FrontMatter{text[begin:at], rest, line + 1}, true
		}
	}
	return f, false
}

// LooseLine is a line of a header that is read as a key and its text where the header is not YAML.
type LooseLine struct {
	Key, Text string
	Line      int // in the file, from 1
	Column    int // of the text, in bytes from 1
}

// Loosely reads a header whose lines are not YAML, such as a description with a colon in it: each line is a key and its
// text, and indented lines go on. ok is false for one that cannot be read so either.
func (f FrontMatter) Loosely() (lines []LooseLine, ok bool) {
	form := regexp.MustCompile(`^([A-Za-z][\w-]*):(?:\s+(.*\S))?\s*$`)
	for i, text := range strings.Split(f.Header, "\n") {
		text = strings.TrimRight(text, "\r")
		found := form.FindStringSubmatch(text)
		switch last := len(lines) - 1; {
		case found != nil:
			lines = append(lines, LooseLine{found[1], strings.Trim(found[2], `"'`), i + 2, len(found[1]) + 3})
		case strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#"):
		case last < 0 || !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\t"):
			return nil, false
		default:
			lines[last].Text = strings.TrimSpace(lines[last].Text + " " + strings.TrimSpace(text))
		}
	}
	return lines, len(lines) > 0
}

// Fields are the fields of a header. problem says, with its line in the file, what is not YAML in it; then the fields
// are those of Loosely, and nil if it cannot be read so either.
func (f FrontMatter) Fields() (fields map[string]any, problem string) {
	fields = map[string]any{}
	_, err := Decode([]byte("\n"+f.Header), &fields, Options{}) // the line above is that of the hyphens
	if err == nil {
		return fields, ""
	}
	problem = err.Error()
	loose, ok := f.Loosely()
	if !ok {
		return nil, problem
	}
	fields = map[string]any{}
	for _, line := range loose {
		fields[line.Key] = line.Text
	}
	return fields, problem
}

// Text is a field that is a text, without the space around it; "" if there is none.
func Text(fields map[string]any, name string) string {
	text, _ := fields[name].(string)
	return strings.TrimSpace(text)
}

// SkillProblems says what keeps a SKILL.md from being used, and what agents may read otherwise than it is meant;
// nothing for a sound one. fatal are those of the first kind.
func SkillProblems(text string) (problems []string, fatal bool) {
	f, ok := CutFrontMatter(text)
	if !ok {
		return []string{"it has no front matter: begin it with ---, name and description, and ---"}, true
	}
	fields, problem := f.Fields()
	if problem != "" {
		problems = append(problems, fmt.Sprintf("its front matter is not YAML (%s): put the text in quotes", problem))
	}
	if fields == nil {
		return problems, true
	}
	for _, name := range []string{"name", "description"} {
		if Text(fields, name) == "" {
			problems, fatal = append(problems, "its front matter has no "+name), true
		}
	}
	return problems, fatal
}

package definitions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
)

// maxFileBytes bounds a file with a definition.
const maxFileBytes = 1 << 20

// document is a parsed file: the tree of its YAML and, of Markdown, the text below the header.
type document struct {
	root     *value
	markdown bool
	body     string
	bodyLine int // the body's first line in the file
	problems Problems
}

// parse reads a file by the ending of its name: .md has a header of YAML between lines of three hyphens. What cannot be
// read at all leaves root nil and says why in problems.
func parse(name string, content []byte) document {
	d := document{markdown: path.Ext(name) == ".md"}
	if problem, bad := unreadable(content); bad {
		d.problems = Problems{problem}
		return d.in(name)
	}
	text, before := content, 0
	if d.markdown {
		f, ok := strictyaml.CutFrontMatter(string(content))
		if text, d.body, d.bodyLine = []byte(f.Header), f.Body, f.BodyLine; !ok {
			d.problems = Problems{{
				Line: 1, Column: 1, Severity: SeverityError,
				Message:    "has no header: the first line must be ---, and another line of --- must end it",
				Suggestion: "begin the file with ---, the fields in YAML, and ---",
			}}
			return d.in(name)
		}
		before = 1
	}
	d.read(text, before)
	return d.in(name)
}

func (d document) in(file string) document {
	for i := range d.problems {
		d.problems[i].File = file
	}
	return d
}

// unreadable says why a file is not text.
func unreadable(content []byte) (Problem, bool) {
	p := Problem{Line: 1, Column: 1, Severity: SeverityError}
	var at int
	switch {
	case len(content) > maxFileBytes:
		p.Line, p.Column = 0, 0
		p.Message = fmt.Sprintf("has %d bytes; at most %d are read", len(content), maxFileBytes)
		return p, true
	case !utf8.Valid(content):
		for at = 0; at < len(content); {
			r, size := utf8.DecodeRune(content[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		p.Message, p.Suggestion = "is not valid UTF-8", "save the file as UTF-8"
	case bytes.IndexByte(content, 0) >= 0:
		at = bytes.IndexByte(content, 0)
		p.Message = "holds a NUL byte"
	default:
		return p, false
	}
	lines := bytes.Split(content[:at], []byte("\n"))
	p.Line, p.Column = len(lines), utf8.RuneCount(lines[len(lines)-1])+1
	return p, true
}

// read parses one YAML document, which must be a mapping.
func (d *document) read(text []byte, before int) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node, more yaml.Node
	err := decoder.Decode(&node)
	if err == nil {
		if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
			d.problems = append(d.problems, Problem{
				Line: max(more.Line, 1) + before, Column: 1, Severity: SeverityError, Message: "holds more than one YAML document",
				Suggestion: "give each definition a file of its own",
			})
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		d.problems = append(d.problems, Problem{Line: 1 + before, Column: 1, Severity: SeverityError, Message: "is empty"})
		return
	case err != nil:
		d.problems = append(d.problems, syntaxProblem(err, text, before))
		return
	}
	c := converter{lineOffset: before}
	d.root = c.convert(node.Content[0], "", 0)
	d.problems = append(d.problems, c.problems...)
	if d.root != nil && d.root.kind != kindMapping {
		d.problems = append(d.problems, Problem{
			Line: d.root.line, Column: d.root.column, Severity: SeverityError,
			Message:    fmt.Sprintf("is %s; fields are needed", d.root.kind),
			Suggestion: "write one field a line, such as name: my-agent",
		})
		d.root = nil
	}
}

// notYAML begins the problem of a text that YAML does not take.
const notYAML = "is no YAML: "

// syntaxProblem returns a problem for an error of the YAML parser, which names the line in its text alone.
func syntaxProblem(err error, text []byte, before int) Problem {
	p := Problem{Line: 1 + before, Column: 1, Severity: SeverityError,
		Message: notYAML + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := regexp.MustCompile(`line (\d+): (.*)`).FindStringSubmatch(err.Error()); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			p.Line, p.Message = line+before, notYAML+m[2]
			lines := strings.Split(string(text), "\n")
			if line <= len(lines) {
				p.Column = 1 + len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " "))
			}
		}
	}
	if strings.Contains(err.Error(), "cannot start any token") || bytes.Contains(text, []byte("\n\t")) {
		p.Suggestion = "indent with spaces; YAML takes no tabs"
	}
	return p
}

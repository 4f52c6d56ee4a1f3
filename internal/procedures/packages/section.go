package packages

import (
	"bytes"
	"slices"
	"strings"
)

// marks returns the lines between which a section stands in a file that others write, too.
func marks(words string) (begin, end string) {
	return "<!-- BEGIN AAM: " + words + " -->", "<!-- END AAM: " + words + " -->"
}

// sectionText returns a section with its marks.
func sectionText(p placed) ([]byte, error) {
	begin, end := marks(p.section)
	text, err := p.file.Content.Bytes()
	return []byte(begin + "\n" + strings.TrimRight(string(text), "\n") + "\n" + end + "\n"), err
}

// Section is a section that was put into a file.
type Section struct {
	Path   string `yaml:"path"`   // relative to the project, with slashes
	Words  string `yaml:"words"`  // of its marks
	SHA256 string `yaml:"sha256"` // of the section with its marks, sha256: and hexadecimal
	// Before is the white space that was put before it.
	Before string `yaml:"before,omitempty"`
	// Created says that the file did not exist before packages made it.
	Created bool `yaml:"created,omitempty"`
}

// addSection puts a section at the end of a text, after an empty line.
func addSection(text []byte, p placed, block []byte) ([]byte, Section) {
	before := ""
	switch {
	case len(text) == 0:
	case !bytes.HasSuffix(text, []byte("\n")):
		before = "\n\n"
	case !bytes.HasSuffix(text, []byte("\n\n")):
		before = "\n"
	}
	return slices.Concat(text, []byte(before), block), Section{Path: p.path, Words: p.section, SHA256: checksum(block),
		Before: before}
}

// findSection returns the place of a section with its marks in a text; ok is false if it is missing, or there more than
// once.
func findSection(text []byte, words string) (from, to int, ok bool) {
	begin, end := marks(words)
	from = bytes.Index(text, []byte(begin+"\n"))
	if from < 0 || from > 0 && text[from-1] != '\n' || bytes.Count(text, []byte(begin)) > 1 {
		return 0, 0, false
	}
	length := bytes.Index(text[from:], []byte("\n"+end))
	if length < 0 {
		return 0, 0, false
	}
	to = from + length + 1 + len(end)
	if to < len(text) && text[to] == '\n' {
		to++
	}
	return from, to, true
}

// removeSection takes a section out of a text, with the white space that was put before it. changed reports that a
// person has changed it, so that it stays.
func removeSection(text []byte, s Section) (out []byte, changed bool) {
	from, to, ok := findSection(text, s.Words)
	if !ok {
		return text, false // a person has removed it, or made something else of it
	}
	if checksum(text[from:to]) != s.SHA256 {
		return text, true
	}
	if bytes.HasSuffix(text[:from], []byte(s.Before)) {
		from -= len(s.Before)
	}
	return slices.Concat(text[:from], text[to:]), false
}

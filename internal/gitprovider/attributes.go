package gitprovider

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// AttributesName is the name of the files that give attributes to paths; see gitattributes(5).
const AttributesName = ".gitattributes"

// Attributes are files of attributes by their folders; the root is "".
type Attributes map[string]string

// Filter returns the filter that the attributes give to a file, such as lfs: what git stores then is not the file
// itself. "" is none. Of several lines the last one counts, and of several files the deepest.
func (a Attributes) Filter(file string) (filter string) {
	folders := []string{""}
	for i, r := range file {
		if r == '/' {
			folders = append(folders, file[:i])
		}
	}
	macros := map[string]string{} // filter by macro
	for _, folder := range folders {
		below := strings.TrimPrefix(strings.TrimPrefix(file, folder), "/")
		for line := range strings.Lines(a[folder]) {
			pattern, attributes := attributesOf(line)
			if name, isMacro := strings.CutPrefix(pattern, "[attr]"); isMacro {
				if set, told := filterIn(attributes, macros); told {
					macros[name] = set
				}
				continue
			}
			if set, told := filterIn(attributes, macros); told && attributesMatch(pattern, below) {
				filter = set
			}
		}
	}
	return filter
}

// Filtered returns the patterns that a file of attributes gives a filter, each with it, such as "*.bin (lfs)".
func (a Attributes) Filtered(folder string) (out []string) {
	macros := map[string]string{}
	for line := range strings.Lines(a[folder]) {
		pattern, attributes := attributesOf(line)
		set, told := filterIn(attributes, macros)
		if name, isMacro := strings.CutPrefix(pattern, "[attr]"); isMacro {
			macros[name] = set
		} else if told && set != "" {
			out = append(out, pattern+" ("+set+")")
		}
	}
	return out
}

// attributesOf parts a line; pattern is "" for one that says nothing.
func attributesOf(line string) (pattern string, attributes []string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", nil
	}
	if rest, quoted := strings.CutPrefix(line, `"`); quoted {
		pattern, line, _ = strings.Cut(rest, `"`)
		return pattern, strings.Fields(line)
	}
	fields := strings.Fields(line)
	return fields[0], fields[1:]
}

// filterIn returns the filter that attributes set; told is false if they say nothing of one.
func filterIn(attributes []string, macros map[string]string) (filter string, told bool) {
	for _, a := range attributes {
		value, sets := strings.CutPrefix(a, "filter=")
		macro, isMacro := macros[a]
		switch {
		case sets:
			filter, told = value, true
		case a == "-filter" || a == "!filter":
			filter, told = "", true
		case isMacro:
			filter, told = macro, true
		}
	}
	return filter, told
}

// attributesMatch applies a pattern to a path that is relative to the folder of the file of attributes.
func attributesMatch(pattern, below string) bool {
	if !strings.Contains(pattern, "/") {
		below = path.Base(below)
	}
	fits, err := doublestar.Match(strings.TrimPrefix(pattern, "/"), below)
	return err == nil && fits && pattern != ""
}

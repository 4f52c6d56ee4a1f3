package deploy

import (
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
)

// trace notes what the files of targets are made of. A nil one notes nothing.
type trace struct{ files map[change.FileKey]madeOf }

func newTrace() *trace { return &trace{files: map[change.FileKey]madeOf{}} }

func (t *trace) note(target change.TargetName, root, rel string, of madeOf) {
	if t != nil {
		t.files[change.FileKey{Target: target, Path: filepath.Join(root, filepath.FromSlash(rel))}] = of
	}
}

// madeOf are the parts of a target's file, in their order, and the text after the last one.
type madeOf struct {
	parts []part
	after string
}

// part is a module's file in one of a target.
type part struct {
	module rendered
	file   string // of the module, with slashes
	before string // text between the part before, or the beginning, and this one
	line   bool   // it ends with a newline, whether its file does or not
}

// text returns the text of the module's file, as it is in the target's.
func (p part) text() (string, error) {
	content, err := p.module.tree[p.file].Content.Bytes()
	if err != nil || !p.line {
		return string(content), err
	}
	return withNewline(string(content)), nil
}

// text returns the text of the target's file.
func (of madeOf) text() (string, error) {
	var b strings.Builder
	for _, p := range of.parts {
		text, err := p.text()
		if err != nil {
			return "", err
		}
		b.WriteString(p.before + text)
	}
	return b.String() + of.after, nil
}

// apart divides a text of the target's file: one text for each part. ok is false if something between the parts has
// changed since it was put there, or is there twice.
func (of madeOf) apart(text string) (parts []string, ok bool) {
	rest, ok := strings.CutPrefix(text, of.parts[0].before)
	if !ok {
		return nil, false
	}
	for _, p := range of.parts[1:] {
		body, more, found := strings.Cut(rest, p.before)
		if !found || strings.Contains(more, p.before) {
			return nil, false
		}
		parts, rest = append(parts, body), more
	}
	last, ok := strings.CutSuffix(rest, of.after)
	return append(parts, last), ok
}

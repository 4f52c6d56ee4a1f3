package deploy

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// ExplainedFile is a file of a target, and what it is made of.
type ExplainedFile struct {
	Target fileset.TargetName `json:"target"`
	Path   string             `json:"path"`
	// Drift says how it differs from what was deployed; "" if it does not.
	Drift fileset.DriftKind `json:"drift,omitempty"`
	Parts []ExplainedPart   `json:"parts"`
}

// ExplainedPart is one module's part of a file.
type ExplainedPart struct {
	Module string     `json:"module"`
	Type   ModuleType `json:"type"`
	File   string     `json:"file" doc:"Of the module"`
	First  int        `json:"first_line" doc:"Of the target's file, as the module has it now"`
	Last   int        `json:"last_line"`
	// Layers begin with the lowest; the last one that changes the file decides.
	Layers []ExplainedLayer `json:"layers"`
}

// ExplainedLayer is a place that a module's file comes from.
type ExplainedLayer struct {
	Level      string `json:"level" enum:"upstream,global,machine,project"`
	How        string `json:"how" enum:"source,replaces,adds,patches"`
	Repository string `json:"repository,omitempty" doc:"Of upstream; empty for the configuration's own"`
	Commit     string `json:"commit,omitempty"`
	File       string `json:"file" doc:"In its repository"`
	Line       int    `json:"line,omitempty" doc:"Of this file, if it gives the line that was asked for; a patch has none"`
	Gives      bool   `json:"gives" doc:"It decides the file, or the line that was asked for"`
}

// Explain says which modules and overlays give a file, or one of its lines; line is 0 for the whole file.
// E_FILE_UNKNOWN if no module gives it, or the file does not have the line.
func (s *Service) Explain(ctx context.Context, r Request, name string, line int) (out []ExplainedFile, err error) {
	name = s.absolute(name)
	traced, err := s.traced(ctx, r)
	if err != nil {
		return nil, err
	}
	_, drift, _, err := s.Status(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, target := range traced.Targets {
		key := fileset.FileKey{Target: target, Path: name}
		of, wanted := traced.files[key]
		if !wanted {
			continue
		}
		file := ExplainedFile{Target: target, Path: name}
		for _, d := range drift {
			if d.Target == target && d.Path == name {
				file.Drift = d.Kind
			}
		}
		if file.Parts, err = s.parts(traced, of, line); err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	switch {
	case len(out) == 0:
		return nil, fileset.NewError(FileUnknown, "file_unknown", []string{"look_at_plan"},
			"no module gives %s; claudeops deploy diff lists the files of all modules that are not in place, claudeops deploy "+
				"status the others that are not as they were deployed", name).With("path", name)
	case len(out[0].Parts) == 0:
		return nil, fileset.NewError(FileUnknown, "line_unknown", []string{"fix_arguments"},
			"no module gives line %d of %s: it is beyond the file's end, or stands between the parts of two modules", line,
			name).With("path", name)
	}
	return out, nil
}

// absolute returns a path as a person writes it: from the project, or from home with ~/.
func (s *Service) absolute(name string) string {
	p := s.setup.Places
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(p.Home, rest)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.Project, name)
	}
	folder, base := filepath.Split(filepath.Clean(name))
	if real, err := fileset.RealPath(folder); err == nil { // the project's path has no links
		if _, inside := under(p.Project, real); inside {
			return filepath.Join(real, base)
		}
	}
	return filepath.Clean(name)
}

// under returns a path below a folder, from there.
func under(folder, name string) (rel string, ok bool) {
	rel, err := filepath.Rel(folder, name)
	return filepath.ToSlash(rel), err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// traced is a desired state with the origins of its files.
type traced struct {
	*fileset.Desired
	*trace
	from configSource
}

func (s *Service) traced(ctx context.Context, r Request) (t traced, err error) {
	if err := s.checkHome(); err != nil {
		return t, err
	}
	t.trace, t.from = newTrace(), s.setup.inPlace(r)
	t.from.trace = t.trace
	t.Desired, err = s.setup.desire(ctx, r, t.from)
	return t, err
}

// parts returns the parts of a file, or the one that has a line.
func (s *Service) parts(t traced, of madeOf, line int) (out []ExplainedPart, err error) {
	at := 1 // the line at which the part begins
	for _, p := range of.parts {
		text, err := p.content()
		if err != nil {
			return nil, err
		}
		at += strings.Count(p.before, "\n")
		lines := strings.Count(withNewline(text), "\n")
		if text == "" {
			lines = 0
		}
		if line == 0 || at <= line && line < at+lines {
			asked := 0
			if line > 0 {
				asked = line - at + 1
			}
			explained := ExplainedPart{Module: p.module.ID, Type: p.module.Type, File: p.file, First: at, Last: at + lines - 1}
			if explained.Layers, err = s.layers(t.from, p, asked); err != nil {
				return nil, err
			}
			out = append(out, explained)
		}
		at += strings.Count(text, "\n")
	}
	return out, nil
}

// layers returns the layers that change a file of a module; line is 0 for none.
func (s *Service) layers(from configSource, p filePart, line int) (out []ExplainedLayer, err error) {
	var texts []string
	for i, l := range p.module.layers {
		content, has := l.tree[p.file]
		_, replaced := l.files[p.file]
		patch := l.patchOf(p.file)
		if !has || i > 0 && !replaced && patch == "" {
			continue
		}
		one := ExplainedLayer{Level: string(l.level), File: path.Join(l.dir, p.file), How: "replaces"}
		switch {
		case i == 0:
			kept := s.placeOf(from, p.module, p.file)
			one = ExplainedLayer{Level: "upstream", How: "source", Repository: withoutUserinfo(kept.address),
				Commit: kept.commit,
				File:   kept.path}
		case patch != "":
			one.How, one.File = "patches", patch
		case len(out) == 0:
			one.How = "adds"
		}
		text, err := content.Content.Bytes()
		if err != nil {
			return nil, err
		}
		out, texts = append(out, one), append(texts, string(text))
	}
	giving(out, texts, line)
	return out, nil
}

// sourceLocation is the place of a module's file, without overlays.
type sourceLocation struct {
	address string // of the repository; "" for the configuration's own
	commit  string
	path    string // in the repository, with slashes
}

// placeOf returns the place of a module's file. The source of a module may be the file itself.
func (s *Service) placeOf(from configSource, m rendered, file string) sourceLocation {
	var out sourceLocation
	dir, name := from.dir, ""
	if g := m.Source.Git; g != nil {
		out.address, out.commit, name = g.URL, m.commit, g.Subdir
		dir = s.setup.Git.commitFolder(g, m.commit)
	} else {
		name = m.Source.LocalPath.Path
	}
	name = path.Clean(filepath.ToSlash(name))
	out.path = path.Join(name, file)
	if info, err := files.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && !info.IsDir() {
		out.path = name
	}
	return out
}

// patchOf returns the file of the patch that a layer has for a module's file; "" if it has none.
func (o overlay) patchOf(file string) string {
	for _, p := range o.patches {
		if p.rel == file {
			return p.file
		}
	}
	return ""
}

// giving marks the layer that decides a file, or one of its lines: from the highest down, the first that is not a patch
// around the line.
func giving(layers []ExplainedLayer, texts []string, line int) {
	for i := len(layers) - 1; i >= 0; i-- {
		if layers[i].How != "patches" {
			layers[i].Gives, layers[i].Line = true, line
			return
		}
		if line == 0 {
			layers[i].Gives = true
			return
		}
		below, kept := lineBefore(texts[i-1], texts[i], line)
		if !kept {
			layers[i].Gives = true
			return
		}
		line = below
	}
}

// lineBefore returns the number of a line before an edit; kept is false if the edit made the line.
func lineBefore(before, after string, line int) (at int, kept bool) {
	shift := 0 // how many lines more the text has now, before the edit
	for _, e := range textedit.LineEdits(before, after) {
		first := strings.Count(before[:e.Start], "\n") + 1 + shift
		made := strings.Count(withoutEnd(e.New), "\n")
		if e.New != "" {
			made++
		}
		switch {
		case line < first:
			return line - shift, true
		case line < first+made:
			return 0, false
		}
		gone := strings.Count(withoutEnd(before[e.Start:e.End]), "\n")
		if e.End > e.Start {
			gone++
		}
		shift += made - gone
	}
	return line - shift, true
}

func withoutEnd(text string) string { return strings.TrimSuffix(text, "\n") }

// trace notes what the files of targets are made of. A nil one notes nothing.
type trace struct{ files map[fileset.FileKey]madeOf }

func newTrace() *trace { return &trace{files: map[fileset.FileKey]madeOf{}} }

func (t *trace) recordOrigin(target fileset.TargetName, root, rel string, of madeOf) {
	if t != nil {
		t.files[fileset.FileKey{Target: target, Path: filepath.Join(root, filepath.FromSlash(rel))}] = of
	}
}

// madeOf are the parts of a target's file, in their order, and the text after the last one.
type madeOf struct {
	parts []filePart
	after string
}

// filePart is a module's file in one of a target.
type filePart struct {
	module rendered
	file   string // of the module, with slashes
	before string // text between the part before, or the beginning, and this one
	line   bool   // it ends with a newline, whether its file does or not
}

// content returns the text of the module's file, as it is in the target's.
func (p filePart) content() (string, error) {
	content, err := p.module.tree[p.file].Content.Bytes()
	if err != nil || !p.line {
		return string(content), err
	}
	return withNewline(string(content)), nil
}

// content returns the text of the target's file.
func (of madeOf) content() (string, error) {
	var b strings.Builder
	for _, p := range of.parts {
		text, err := p.content()
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

package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Level is one of the places of overlays, low to high.
type Level string

// The levels.
const (
	GlobalLevel  Level = "global"
	MachineLevel Level = "machine"
	ProjectLevel Level = "project"
)

// overlay holds a repository folder's changes to a module.
type overlay struct {
	level   Level
	dir     string       // in the repository, with slashes
	files   fileset.Tree // that replace or add; of kind dir
	patches []patchFile
}

// patchFile is a patch of one file.
type patchFile struct {
	file string // in the repository
	rel  string // of the module's file
	text string
}

// patcher applies a unified diff to a file's text. failure is the tool's message if it does not apply.
type patcher func(ctx context.Context, name, before, patch string) (after, failure string, err error)

// Folders of the repository that have overlays.
const (
	overlaysName = "overlays"
	projectsName = "projects"
)

// levels returns the folders that have overlays of modules, low to high.
func levels(machine, project string) []overlay {
	return []overlay{
		{level: GlobalLevel, dir: overlaysName},
		{level: MachineLevel, dir: path.Join(overlaysName, "machines", machine)},
		{level: ProjectLevel, dir: path.Join(projectsName, project, overlaysName)},
	}
}

// levelsIn returns the levels that a repository has, so that not every module is looked for at each.
func levelsIn(root *files.Dir, machine, project string) (out []overlay) {
	for _, level := range levels(machine, project) {
		if _, err := root.Stat(level.dir); !errors.Is(err, fs.ErrNotExist) {
			out = append(out, level)
		}
	}
	return out
}

// readOverlay reads an overlay's folder; ok is false if there is none. E_CONFIG_INVALID if its kind is unknown, or it
// has files of both kinds.
func readOverlay(root *files.Dir, o overlay) (_ overlay, ok bool, err error) {
	whole, ok, err := fileset.ReadTree(root, o.dir, nil)
	if err != nil {
		return o, false, invalidConfig("the overlay %s cannot be read: %s", o.dir, err).With("overlay_dir", o.dir)
	}
	if !ok {
		return o, false, nil
	}
	kind, err := overlayKind(root, o.dir)
	if err != nil {
		return o, false, err
	}
	patches, _, err := fileset.ReadTree(root, path.Join(o.dir, ".agentpack", "patches"), nil)
	if err != nil {
		return o, false, invalidConfig("the patches of the overlay %s cannot be read: %s", o.dir, err).With("overlay_dir",
			o.dir)
	}
	switch {
	case kind == "dir" && len(patches) > 0:
		return o, false, invalidConfig("the overlay %s is of the kind dir, and has patches", o.dir).With("overlay_dir", o.dir)
	case kind == "patch" && len(whole) > 0:
		return o, false, invalidConfig("the overlay %s is of the kind patch, and has files besides its patches",
			o.dir).With("overlay_dir", o.dir)
	}
	o.files = whole
	for _, rel := range patches.Paths() {
		name, isPatch := strings.CutSuffix(rel, ".patch")
		text, err := patches[rel].Content.Bytes()
		if err != nil {
			return o, false, err
		}
		p := patchFile{file: path.Join(o.dir, ".agentpack", "patches", rel), rel: name, text: string(text)}
		if why := p.bad(); !isPatch || why != "" {
			return o, false, invalidConfig("%s %s", p.file,
				strings.TrimSpace("is not a patch of one file of the module. "+why)).With("patch_file", p.file)
		}
		o.patches = append(o.patches, p)
	}
	return o, true, nil
}

// maxKindBytes bounds the file that names the kind of an overlay.
const maxKindBytes = 64 << 10

func overlayKind(root *files.Dir, dir string) (string, error) {
	name := path.Join(dir, ".agentpack", "overlay.json")
	text, _, err := root.Read(name, maxKindBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "dir", nil
	}
	said := struct {
		Kind string `json:"overlay_kind"`
	}{"dir"}
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || said.Kind != "dir" && said.Kind != "patch" {
		return "", invalidConfig(`%s must be {"overlay_kind": "dir"} or {"overlay_kind": "patch"}`, name).With("overlay_dir",
			dir)
	}
	return said.Kind, nil
}

// bad says why a patch is none that may be applied; "" if it may: text, for this one file, which it neither adds nor
// removes.
func (p patchFile) bad() string {
	parts, why := takeApart(p.text)
	if why == "" {
		why = parts.isFor(p.rel)
	}
	return why
}

// apply lays an overlay over a module's files.
func (o overlay) apply(ctx context.Context, id string, base fileset.Tree, patch patcher) (fileset.Tree, error) {
	out := fileset.Tree{}
	for p, f := range base {
		out[p] = f
	}
	for p, f := range o.files {
		out[p] = f
	}
	for _, p := range o.patches {
		f, ok := out[p.rel]
		before, err := f.Content.Bytes()
		if err != nil {
			return nil, err
		}
		switch {
		case !ok:
			return nil, invalidConfig("%s is for %s, which the module %s does not have", p.file, p.rel, id).With("patch_file",
				p.file)
		case !utf8.Valid(before):
			return nil, invalidConfig("%s is for %s, which is not text", p.file, p.rel).With("patch_file", p.file)
		}
		after, failure, err := patch(ctx, p.rel, string(before), p.text)
		if err != nil {
			return nil, fileset.NewError(Unexpected, "", nil, "the patch %s could not be applied: %s", p.file, err).Because(err)
		}
		if failure != "" {
			return nil, fileset.NewError(OverlayPatchFailed, "overlay_patch_apply_failed",
				[]string{"regenerate_patch", "switch_to_dir_overlay", "retry_command"},
				"the patch %s does not apply to %s of the module %s", p.file, p.rel, id).With("module_id", id).With("scope",
				string(o.level)).
				With("overlay_dir", o.dir).With("patch_file", p.file).With("relpath", p.rel).With("stderr", failure)
		}
		f.Content = fileset.Bytes([]byte(after))
		out[p.rel] = f
	}
	return out, nil
}

// layer is one of the places that a module's files come from: its source, or an overlay.
type layer struct {
	overlay              // zero for the source
	tree    fileset.Tree // with the layers below it
}

// overlaid returns the layers of a module, from its source, of the levels that there are.
func overlaid(ctx context.Context, root *files.Dir, m Module, base fileset.Tree, there []overlay,
	patch patcher) ([]layer, error) {
	out := []layer{{tree: base}}
	for _, level := range there {
		level.dir = path.Join(level.dir, fsKey(m.ID))
		o, ok, err := readOverlay(root, level)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if base, err = o.apply(ctx, m.ID, base, patch); err != nil {
			return nil, err
		}
		out = append(out, layer{o, base})
	}
	return out, nil
}

// onePatch is a unified diff of one file, taken apart.
type onePatch struct {
	from, to []string // what follows --- and +++ outside of hunks
	hunks    []string // lines, each with its end
}

// takeApart separates a patch's hunks from what says which file it is for, by the lines that each hunk says it has:
// within a hunk, a line may look like a header. why says why it is none that may be applied; "" if it may.
func takeApart(text string) (p onePatch, why string) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return p, "It is not text."
	}
	before, after := 0, 0 // lines that the hunk still has
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		mark := " "
		if bare != "" {
			mark = bare[:1]
		}
		switch {
		case before+after > 0 && strings.Contains(" -+", mark):
			if mark != "+" {
				before--
			}
			if mark != "-" {
				after--
			}
			if before < 0 || after < 0 {
				return p, "A hunk has more lines than it says."
			}
			p.hunks = append(p.hunks, line)
		case mark == `\` && len(p.hunks) > 0: // no newline at the end of the file
			p.hunks = append(p.hunks, line)
		case before+after > 0:
			return p, "A hunk has fewer lines than it says."
		case strings.HasPrefix(line, "@@"):
			var ok bool
			if before, after, ok = hunkLines(bare); !ok {
				return p, "A hunk does not say which lines it is for."
			}
			p.hunks = append(p.hunks, line)
		default:
			if why := p.header(bare); why != "" {
				return p, why
			}
		}
	}
	if before+after > 0 {
		return p, "A hunk has fewer lines than it says."
	}
	return p, ""
}

// header reads a line outside of hunks.
func (p *onePatch) header(line string) (why string) {
	has := func(beginnings ...string) bool {
		for _, b := range beginnings {
			if strings.HasPrefix(line, b) {
				return true
			}
		}
		return false
	}
	switch {
	case has("GIT binary patch", "Binary files"):
		return "It is for a binary file."
	case has("rename ", "copy ", "new file", "deleted file"):
		return "It adds, removes, renames or copies a file."
	case has("--- "):
		p.from = append(p.from, line[4:])
	case has("+++ "):
		p.to = append(p.to, line[4:])
	}
	return ""
}

// hunkLines returns how many lines of the file a hunk has before and after it.
func hunkLines(line string) (before, after int, ok bool) {
	m := regexp.MustCompile(`^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@`).FindStringSubmatch(line)
	if m == nil {
		return 0, 0, false
	}
	count := func(text string) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return 1
	}
	return count(m[1]), count(m[2]), true
}

// isFor reports whether the patch is for one file, and for this one.
func (p onePatch) isFor(rel string) (why string) {
	bare := func(name, prefix string) string { return strings.TrimPrefix(headerName(name), prefix) }
	switch {
	case len(p.from) != 1 || len(p.to) != 1:
		return "It must have exactly one line of --- and one of +++."
	case bare(p.from[0], "a/") != rel || bare(p.to[0], "b/") != rel:
		return "Its --- and +++ must both name " + rel + "."
	}
	return ""
}

// headerName returns the file name of a --- or +++ line. git puts one with other letters than ASCII's in quotes, its
// bytes as in a string of C (git-config(1), core.quotePath), all of which Go's strings know too.
func headerName(text string) string {
	if quoted, err := strconv.QuotedPrefix(text); err == nil && quoted[0] == '"' {
		if name, err := strconv.Unquote(quoted); err == nil {
			return name
		}
	}
	name, _, _ := strings.Cut(text, "\t") // a time may follow
	return name
}

// alone returns the patch for a file of another name, with nothing but its hunks.
func (p onePatch) alone(name string) string {
	return "--- a/" + name + "\n+++ b/" + name + "\n" + strings.Join(p.hunks, "")
}

package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// namesOfGit returns names that git, or a file system, treats as .git.
func namesOfGit() []string {
	out := []string{
		".git", ".GIT", ".Git", ".git ", ".git.", ".git. . ", ".git::$INDEX_ALLOCATION", ".git:stream", ".git .:x", "git~1",
		"GIT~1", "GIT~2", "git~12", "Git~1.", "GI7D29~1", "gi7d29~4",
	}
	for _, ignored := range "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff" {
		for at := range len(".git") + 1 {
			out = append(out, ".git"[:at]+string(ignored)+".git"[at:])
		}
	}
	return out
}

func manifestHeader() tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Mode: 0o644}
}

func fileHeader(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 1, Mode: 0o644}
}

func TestNothingThatGitTakesForItsOwnFolderIsUnpackedOrPacked(t *testing.T) {
	t.Parallel()
	for _, name := range namesOfGit() {
		for _, at := range []string{name, name + "/config", "skills/look/" + name + "/config"} {
			if _, err := Unpack(archiveOf(t, manifestHeader(), fileHeader(at))); codeOfError(err) != IntegrityError ||
				!strings.Contains(err.Error(), "git's own folder") {
				t.Errorf("unpacked %+q: %v", at, err)
			}
		}
		dir := folderOfPackage(t, "p", "1.0.0")
		operationtest.WriteFiles(t, dir, map[string]string{"skills/look/" + name + "/config": "x"})
		if _, err := Pack(dir); codeOfError(err) != ManifestInvalid || !strings.Contains(err.Error(), "git's own folder") {
			t.Errorf("packed %+q: %v", name, err)
		}
	}
	for _, name := range []string{".github/x.md", ".gitignore", ".gitattributes", "git", "git/x", "git~", "git~x", "x.git",
		"gift~1", "gitlab~1", "Ärger.md", "日本語.md", "🙂.md"} {
		if _, err := Unpack(archiveOf(t, manifestHeader(), fileHeader(name))); err != nil {
			t.Errorf("refused %+q: %v", name, err)
		}
	}
}

func TestAWorkingCopyIsPackedWithoutItsGitFolder(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir string) error{
		"a folder": func(dir string) error { return os.MkdirAll(filepath.Join(dir, ".git", "objects"), 0o755) },
		"a worktree's file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /x\n"),
				0o600)
		},
		"a link to a folder": func(dir string) error { return os.Symlink(t.TempDir(), filepath.Join(dir, ".git")) },
	} {
		b := newBench(t)
		b.put("skills/look/SKILL.md", "# Look\n")
		must.Do(t, prepare(b.settings.Project))
		b.same("create_package", `{"name":"mine"}`, map[string]any{"artifacts_included": map[string]any{"skills": 1.0}})
		b.same("validate", `{}`, map[string]any{"valid": true})
		b.same("publish", `{}`, map[string]any{"notes.0": "git's own .git in the folder was left out"})
		packed := b.published("mine", "0.1.0")
		for _, f := range packed.Files {
			if strings.HasPrefix(f.Name, ".git") {
				t.Errorf("%s: %s was packed", name, f.Name)
			}
		}
	}
}

// published is the archive of a version in the registry.
func (b *bench) published(name, version string) *Packed {
	b.Helper()
	n, err := parseName(name)
	must.Do(b, err)
	m, err := b.registry.readMetadata(n)
	must.Do(b, err)
	packed, err := b.registry.Archive(n, *m.findVersion(version))
	must.Do(b, err)
	return packed
}

// A repository in a project, which a package cannot have, is refused by each tool that looks at the folder, and nothing
// is written.
func TestWhatCannotBePackedIsSaidBeforeItIsPublished(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *bench) error{
		"git's own folder": func(b *bench) error {
			return os.MkdirAll(filepath.Join(b.settings.Project, "skills/look/.git"),
				0o755)
		},
		"taken for it":   func(b *bench) error { b.put("GIT~1/config", "x"); return nil },
		"cannot be seen": func(b *bench) error { b.put("skills/look/a\u202eb.md", "x"); return nil },
	} {
		b := newBench(t)
		b.put("skills/look/SKILL.md", "# Look\n")
		must.Do(t, prepare(b))
		b.fails("create_package", `{"name":"mine"}`, ManifestInvalid, name)
		b.put(manifestName, manifestOf("mine", "1.0.0"))
		answer, text := b.ask("validate", `{}`)
		if part(answer, "valid") != false || !strings.Contains(text, name) {
			t.Errorf("%s: valid: %s", name, text)
		}
		b.fails("publish", `{}`, ManifestInvalid, name)
		if _, err := os.Stat(filepath.Join(b.registry.Dir, "packages")); err == nil {
			t.Errorf("%s: something was published", name)
		}
	}
}

func TestPackRefusesFilesThatGiveRights(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{os.ModeSetuid, os.ModeSetgid, os.ModeSticky} {
		dir := folderOfPackage(t, "p", "1.0.0")
		name := filepath.Join(dir, "skills/look/run.sh")
		must.Do(t, os.Chmod(name, 0o755|mode))
		if info, err := os.Stat(name); err != nil || info.Mode()&mode == 0 {
			continue // systems keep the last of them from files of ordinary users
		}
		if _, err := Pack(dir); codeOfError(err) != ManifestInvalid || !strings.Contains(err.Error(), "rights") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// bareRepository is a folder that git takes for a repository as it is.
func bareRepository(at string) []tar.Header {
	return []tar.Header{fileHeader(at + "HEAD"), fileHeader(at + "config"), fileHeader(at + "objects/x"),
		fileHeader(at + "refs/x")}
}

func TestUnpackRefusesWhatOtherProgramsWouldReadOtherwise(t *testing.T) {
	t.Parallel()
	withMode := func(mode int64) []byte {
		h := fileHeader("run.sh")
		h.Mode = mode
		return archiveOf(t, manifestHeader(), h)
	}
	folder := tar.Header{Typeflag: tar.TypeDir, Name: "a/", Mode: 0o4755}
	sound := archiveOf(t, manifestHeader(), fileHeader("a"))
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"set-user-id": {withMode(0o4755), "rights"}, "set-group-id": {withMode(0o2755), "rights"},
		"sticky":     {withMode(0o1755), "rights"},
		"a folder's": {archiveOf(t, manifestHeader(), folder), "rights"},
		"NFC and NFD": {archiveOf(t, manifestHeader(), fileHeader(norm.NFC.String("é.md")),
			fileHeader(norm.NFD.String("é.md"))), "twice"},
		"NFD and NFC, folders": {archiveOf(t, manifestHeader(), fileHeader(norm.NFD.String("é/a")),
			fileHeader(norm.NFC.String("é/b"))), "twice"},
		"case":                {archiveOf(t, manifestHeader(), fileHeader("Ärger.md"), fileHeader("äRGER.md")), "twice"},
		"case of Greek":       {archiveOf(t, manifestHeader(), fileHeader("ΟΔΟΣ"), fileHeader("οδος")), "twice"},
		"case of folders":     {archiveOf(t, manifestHeader(), fileHeader("a/x"), fileHeader("A/y")), "twice"},
		"the Kelvin sign":     {archiveOf(t, manifestHeader(), fileHeader("skill"), fileHeader("s\u212aill")), "twice"},
		"a dot at the end":    {archiveOf(t, manifestHeader(), fileHeader("a"), fileHeader("a.")), "twice"},
		"a space at the end":  {archiveOf(t, manifestHeader(), fileHeader("a"), fileHeader("a ")), "twice"},
		"a stream":            {archiveOf(t, manifestHeader(), fileHeader(manifestName+"::$DATA")), "twice"},
		"a file and a folder": {archiveOf(t, manifestHeader(), fileHeader("B/c"), fileHeader("b")), "a file and a folder"},
		"bidi":                {archiveOf(t, manifestHeader(), fileHeader("a\u202egpj.exe")), "cannot be seen"},
		"isolates":            {archiveOf(t, manifestHeader(), fileHeader("a\u2066b/c")), "cannot be seen"},
		"zero width":          {archiveOf(t, manifestHeader(), fileHeader("a\u200bb")), "cannot be seen"},
		"a newline":           {archiveOf(t, manifestHeader(), fileHeader("a\nb")), "cannot be seen"},
		"an escape":           {archiveOf(t, manifestHeader(), fileHeader("a\x1b[2Jb")), "cannot be seen"},
		"a hidden folder": {archiveOf(t, manifestHeader(), tar.Header{Typeflag: tar.TypeDir, Name: "a\u200b/"}),
			"cannot be seen"},
		"a repository": {archiveOf(t, append(bareRepository("skills/look/"), manifestHeader())...), "repository"},
		"at the top":   {archiveOf(t, append(bareRepository(""), manifestHeader())...), "repository"},
		"in small letters": {archiveOf(t, fileHeader("x/head"), fileHeader("x/Refs/a"), fileHeader("x/OBJECTS/a"),
			manifestHeader()), "repository"},
		"with a common folder": {archiveOf(t, fileHeader("x/HEAD"), fileHeader("x/commondir"), manifestHeader()),
			"repository"},
		"a second member":   {append(bytes.Clone(sound), sound...), "follows the end"},
		"an empty member":   {append(bytes.Clone(sound), zipped(t, nil)...), "follows the end"},
		"a tail":            {append(bytes.Clone(sound), "#!/bin/sh"...), "follows the end"},
		"zeros as a tail":   {append(bytes.Clone(sound), make([]byte, 512)...), "follows the end"},
		"a second tar":      {zipped(t, append(unzipped(t, sound), unzipped(t, sound)...)), "follows its last entry"},
		"a tail in the tar": {zipped(t, append(unzipped(t, sound), "tail"...)), "follows its last entry"},
		"zeros without end": {zipped(t, make([]byte, maxUnpackedBytes+(maxEntries+3)*2*512), unzipped(t, sound)...),
			"larger than it may be"},
	} {
		if _, err := Unpack(c.archive); codeOfError(err) != IntegrityError || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, archive := range map[string][]byte{
		"filled up with zeros": zipped(t, append(unzipped(t, sound), make([]byte, 10_240)...)),
		"an emoji":             archiveOf(t, manifestHeader(), fileHeader("👩‍🔧.md")),
		"a part of one": archiveOf(t, manifestHeader(), fileHeader("HEAD"), fileHeader("refs/x"),
			fileHeader("x/objects/y")),
	} {
		if _, err := Unpack(archive); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func unzipped(t *testing.T, archive []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	must.Do(t, err)
	var out bytes.Buffer
	if _, err := out.ReadFrom(zip); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zipped is one member of gzip; what is in front comes first in it.
func zipped(t *testing.T, text []byte, front ...byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	for _, part := range [][]byte{front, text} {
		if _, err := zip.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, zip.Close())
	return out.Bytes()
}

// An archive of somebody else's making lies in the registry. Neither its repository nor a program that git would run
// for it comes into the project.
func TestAnArchiveWithARepositoryIsNotInstalledOrRead(t *testing.T) {
	t.Parallel()
	for _, entries := range [][]tar.Header{{fileHeader(".git/config")}, {fileHeader("skills/look/.GIT/config")},
		{fileHeader("GIT~1/config")}, bareRepository("skills/look/")} {
		b := newBench(t)
		m, problems, _ := readManifest([]byte(manifestOf("a", "1.0.0")))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		archive := archiveOf(t, append(entries, manifestHeader(), fileHeader("skills/look/SKILL.md"))...)
		if _, err := b.registry.Publish(t.Context(), m, archive, "latest", b.settings.Now()); err != nil {
			t.Fatal(err)
		}
		before := b.tree()
		b.fails("info", `{"package_name":"a"}`, IntegrityError, "git")
		b.same("install", `{"packages":["a"]}`, map[string]any{"installed": []any{}, "failed.0.code": "AAM_INTEGRITY_ERROR"})
		if after := b.tree(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: the project has %v", entries[0].Name, after)
		}
	}
}

// FuzzEntryName holds that what an archive may have is a name that git takes, on any file system, and whose other forms
// are known for the same.
func FuzzEntryName(f *testing.F) {
	for _, name := range append(namesOfGit(), "a/b.md", "é/ß.md", "👩‍🔧.md", "a:b", "HEAD", "git~x", "a ", "...") {
		f.Add(name)
	}
	dir := f.TempDir()
	if out, err := exec.Command("git", "init", "--quiet", "--bare", dir).CombinedOutput(); err != nil {
		f.Fatalf("git init: %v: %s", err, out)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if badEntry(name) != "" {
			return
		}
		if !utf8.ValidString(name) || !filepath.IsLocal(name) {
			t.Fatalf("%q is admitted", name)
		}
		command := exec.Command("git", "--git-dir", dir, "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true",
			"update-index", "-z", "--index-info")
		command.Env = []string{"GIT_INDEX_FILE=" + t.TempDir() + "/index", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
			"PATH=" + os.Getenv("PATH")}
		command.Stdin = strings.NewReader("100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t" + name + "\x00")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git does not take %+q: %v: %s", name, err, out)
		}
		for _, other := range []string{name, norm.NFC.String(name), norm.NFD.String(name), strings.ToLower(name),
			strings.ToUpper(name)} {
			names := newEntryNames()
			if why := names.add(name); why != "" {
				t.Fatalf("%+q by itself: %s", name, why)
			}
			if strings.EqualFold(norm.NFD.String(name), norm.NFD.String(other)) && names.add(other) == "" {
				t.Fatalf("%+q and %+q are both admitted", name, other)
			}
		}
	})
}

func TestANameThatIsTooLongIsNoFaultOfRights(t *testing.T) {
	t.Parallel()
	for want, cause := range map[Code]error{InvalidArgument: syscall.ENAMETOOLONG, PermissionDenied: syscall.EACCES} {
		err := &fs.PathError{Op: "open", Path: "x", Err: cause}
		for _, got := range []error{unwritable("x", err), Registry{Name: "r"}.unwritable("x", err)} {
			if e := fault.ContractErrorOf[Code](got); e == nil || e.Code != want {
				t.Errorf("%v: %v", cause, got)
			}
		}
	}
}

func TestOnlySoundManifestsMayBeProposed(t *testing.T) {
	t.Parallel()
	const sound = "name: disk-checks\nversion: 1.0.0\nartifacts:\n  skills:\n    - {name: disk, path: skills/disk}\n"
	for name, c := range map[string]struct {
		content, says string
		line          int
	}{
		"sound":       {sound, "", 0},
		"no YAML":     {"name: a\n\tb", "YAML", 2},
		"a type":      {strings.Replace(sound, "1.0.0", "[1]", 1), "YAML", 2},
		"a version":   {strings.Replace(sound, "1.0.0", "one", 1), "version:", 0},
		"a way out":   {strings.Replace(sound, "skills/disk", "../disk", 1), "leads out", 0},
		"no artifact": {"name: a\nversion: 1.0.0\n", "artifacts:", 0},
	} {
		operationtest.Judged(t, name, FileKind().Validate("aam.yaml", "", c.content), c.says, c.line, 0)
	}
}

// What a file says that it is for is read as deploy, definitions and the gates read it.
func TestWhatAnArtifactIsForIsReadByTheOneReader(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"---\ndescription: Use when: x\n---\n":                  "Use when: x",
		"\ufeff---\r\ndescription: Disks\r\n---\r\n# Title\r\n": "Disks",
		"---\nname: a\n---\n":                                   "",
		"# Title\n":                                             "Title\n",
	} {
		operationtest.WriteFiles(t, dir, map[string]string{"a.md": text})
		root, err := files.OpenDir(dir)
		must.Do(t, err)
		if got := aboutFile(root, "a.md"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		_ = root.Close()
	}
}

func TestASkillThatMayNotBeUsedIsAWarning(t *testing.T) {
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"aam.yaml": "name: disks\nversion: 1.0.0\nauthor: ann\ndescription: Disks\nartifacts:\n  skills:\n" +
			"    - {name: disk, path: skills/disk, description: Disks}\n"})
	for text, want := range map[string]string{
		"---\nname: disk\ndescription: Disks\n---\n":       "",
		"---\nname: disk\ndescription: Use when: x\n---\n": "line 3: ",
		"# Disk\n": "no front matter",
	} {
		operationtest.WriteFiles(t, dir, map[string]string{"skills/disk/SKILL.md": text})
		v := validate(dir, "")
		if said := strings.Join(v.Warnings, "\n"); !v.valid() || !strings.Contains(said, want) ||
			strings.Contains(said, "SKILL.md") != (want != "") {
			t.Errorf("%q: %q, %q", text, v.Errors, said)
		}
	}
}

package deploy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// moduleLines are lines of the kinds that procedures have, with some that look like parts of a patch.
func moduleLines() []string {
	return []string{
		"", "", "---", "name: triage", "description: 'Sorts alerts: first by service'", "# Triage", "## Steps", "- first",
		"  - inner", "    1. innermost", "\t- with a tab",
		"* [ ] a task", "Übergabe an die nächste Schicht", "手順を確認する", "naïve “quotes” – dash", "🙂", "| a | b |", "|---|:-:|",
		"```sh", "curl -s \"$URL\" | jq .", "```",
		"-- a comment of SQL", "++ twice", "- - nested", "@@ -1,2 +1,2 @@ no hunk", "--- a/SKILL.md", "+++ b/SKILL.md",
		"diff --git a/x b/x", "rename from x",
		`\ No newline at end of file`, "trailing spaces   ", " leading space", strings.Repeat("long ", 2000),
		"allowed-tools: Bash(git:*)", "!`git status`", "<!-- a mark -->", "a\\b", "%s",
	}
}

// moduleText makes a text of such lines, with one of the ends that texts have.
func moduleText(random *rand.Rand) string {
	lines := moduleLines()
	end := []string{"\n", "\n", "\r\n"}[random.IntN(3)]
	var b strings.Builder
	if random.IntN(8) == 0 {
		b.WriteString("\ufeff")
	}
	for range 1 + random.IntN(40) {
		b.WriteString(lines[random.IntN(len(lines))] + end)
		if random.IntN(12) == 0 {
			b.WriteString("of another end" + []string{"\n", "\r\n"}[random.IntN(2)])
		}
	}
	if random.IntN(3) == 0 {
		return strings.TrimRight(b.String(), "\r\n") + "x" // no newline at the end
	}
	return b.String()
}

// edited changes some lines of a text, often the first or the last.
func edited(random *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + random.IntN(4) {
		at := []int{0, len(lines) - 1, random.IntN(len(lines))}[random.IntN(3)]
		line := moduleLines()[random.IntN(len(moduleLines()))] + []string{"\n", "\n", "\r\n"}[random.IntN(3)]
		switch random.IntN(4) {
		case 0:
			lines[at] = line
		case 1:
			lines[at] = ""
		case 2:
			lines[at] = line + lines[at]
		case 3:
			lines[at] += strings.TrimRight(line, "\r\n")
		}
	}
	return strings.Join(lines, "")
}

// TestPatchesComeOutAsGitHasThem makes pairs of texts, lets git write the patch of each, and compares our result with
// the text that it was made from, byte for byte; then it compares the same patches on texts that were edited meanwhile
// with git's own results.
func TestPatchesComeOutAsGitHasThem(t *testing.T) {
	t.Parallel()
	const texts = 800
	random := rand.New(rand.NewPCG(18, 2026))
	dir := t.TempDir()
	befores, afters := map[string]string{}, map[string]string{}
	for i := range texts {
		name := fmt.Sprintf("%04d.md", i)
		befores["before/"+name] = moduleText(random)
		afters["after/"+name] = edited(random, befores["before/"+name])
	}
	operationtest.WriteFiles(t, dir, befores)
	operationtest.WriteFiles(t, dir, afters)
	cmd := exec.Command("git", "-c", "core.autocrlf=false", "diff", "--no-index", "--text", "--no-color",
		"--no-ext-diff", "before", "after")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, _ := cmd.Output() // it says by its code that there are differences
	g := testGit(t)
	var group errgroup.Group
	group.SetLimit(4)
	patches := bytes.Split(out, []byte("\ndiff --git a/before/"))
	for i, one := range patches {
		_, rest, ok := strings.Cut("\n"+string(one), "\n--- a/before/")
		name, hunks, found := strings.Cut(rest, "\n")
		_, hunks, headed := strings.Cut(hunks, "\n")
		if !ok || !found || !headed {
			t.Fatalf("%.300q", one)
		}
		if i+1 < len(patches) {
			hunks += "\n" // that the split took
		}
		text := "--- a/SKILL.md\n+++ b/SKILL.md\n" + hunks
		before, after := befores["before/"+name], afters["after/"+name]
		if why := (patchFile{rel: "SKILL.md", text: text}).bad(); why != "" {
			t.Fatalf("%s: %s\n%s", name, why, text)
		}
		if i%8 > 0 { // each is a process of git
			continue
		}
		other := edited(random, before)
		group.Go(func() error {
			got, failure, err := g.Patch(t.Context(), "SKILL.md", before, text)
			if err != nil || failure != "" || got != after {
				t.Errorf("%s: %v, %s (-want +got):\n%s", name, err, failure, cmp.Diff(after, got))
			}
			got, failure, err = g.Patch(t.Context(), "SKILL.md", other, text)
			want, applied := byGit(t, other, text)
			if err != nil || applied != (failure == "") || applied && got != want {
				t.Errorf("%s, edited meanwhile: %v, %q, git applies it: %t (-want +got):\n%s", name, err, failure, applied,
					cmp.Diff(want, got))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil || len(patches) < texts*5/6 {
		t.Errorf("%d patches, %v", len(patches), err)
	}
}

// byGit returns the result of git apply on a file.
func byGit(t *testing.T, before, patch string) (after string, applied bool) {
	t.Helper()
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{"SKILL.md": before})
	cmd := exec.Command("git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" +
		filepath.Dir(dir)}
	applied = cmd.Run() == nil
	text, err := os.ReadFile(filepath.Join(dir, "SKILL.md"))
	if err != nil {
		t.Error(err)
	}
	return string(text), applied && string(text) != before
}

// TestPatchesOfEachForm are patches as people and programs write them.
func TestPatchesOfEachForm(t *testing.T) {
	t.Parallel()
	const before = "one\n-- two\nthree\nfour\nfive\nsix\nseven\n"
	for name, c := range map[string]struct {
		rel, before, patch string
		want, refused      string // one of the two
	}{
		"a line that begins with two hyphens goes": {patch: "@@ -1,3 +1,2 @@\n one\n--- two\n three\n",
			want: "one\nthree\nfour\nfive\nsix\nseven\n"},
		"a line that begins with two pluses comes": {patch: "@@ -1,2 +1,3 @@\n one\n+++ b/x\n -- two\n",
			want: "one\n++ b/x\n-- two\nthree\nfour\nfive\nsix\nseven\n"},
		"a name with marks of patterns": {rel: "a[1]*?.md", patch: "@@ -1,2 +1,2 @@\n-one\n+1\n -- two\n",
			want: "1" + before[3:]},
		"a name with spaces and other letters": {rel: "Über uns.md", patch: "@@ -1,2 +1,2 @@\n-one\n+1\n -- two\n",
			want: "1" + before[3:]},
		"lines that have moved": {patch: "@@ -4,3 +4,3 @@\n three\n-four\n+4\n five\n",
			want: strings.Replace(before, "four", "4", 1)},
		"a text after the hunks, as of a mail": {patch: "@@ -1,2 +1,2 @@\n-one\n+1\n -- two\n-- \n2.39.5\n",
			want: "1" + before[3:]},
		"the end of a file without a newline": {before: "a\nb",
			patch: "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", want: "a\nc"},
		"a newline at the end comes": {before: "a",
			patch: "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", want: "a\n"},
		"an empty file gets lines": {before: "", patch: "@@ -0,0 +1 @@\n+a\n", want: "a\n"},
		"all lines go":             {before: "a\n", patch: "@@ -1 +0,0 @@\n-a\n", want: ""},
		"line ends of Windows": {before: "a\r\nb\r\n", patch: "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n",
			want: "a\r\nc\r\n"},
		"other line ends than the file's": {before: "a\r\nb\r\n", patch: "@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
			refused: "does not apply"},
		"a context that is nearly right": {patch: "@@ -1,3 +1,3 @@\n one\n -- too\n-three\n+3\n",
			refused: "does not apply"},
		"a hunk that is cut off": {patch: "@@ -1,3 +1,3 @@\n one\n--- two\n", refused: "fewer lines"},
		"a hunk of more lines":   {patch: "@@ -1,1 +1,2 @@\n one\n two\n", refused: "more lines"},
		"no hunk":                {patch: "", refused: "atch"},
		"a second file": {patch: "@@ -1 +1 @@\n-one\n+1\n--- a/y\n+++ b/y\n@@ -1 +1 " +
			"@@\n-one\n+1\n", refused: "exactly one"},
		"a file that is renamed after it": {patch: "@@ -1 +1 @@\n-one\n+1\ndiff --git a/y b/z\nrename from " +
			"y\nrename to z\n", refused: "renames"},
		"a binary file after it": {patch: "@@ -1 +1 @@\n-one\n+1\nGIT binary patch\nliteral 0\n",
			refused: "binary"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.rel == "" {
				c.rel = "SKILL.md"
			}
			if c.before == "" && !strings.HasPrefix(c.patch, "@@ -0,0") {
				c.before = before
			}
			text := "--- a/" + c.rel + "\n+++ b/" + c.rel + "\n" + c.patch
			o := overlay{dir: "o", patches: []patchFile{{file: "o/x.patch", rel: c.rel, text: text}}}
			why := o.patches[0].bad()
			var got fileset.Tree
			var err error
			if why == "" {
				if got, err = o.apply(t.Context(), "m", fileset.Tree{c.rel: {Content: fileset.Bytes([]byte(c.before))}},
					testGit(t).Patch); err != nil {
					e := errorOf(err)
					why = err.Error() + fmt.Sprint(e.Details["stderr"])
				}
			}
			switch {
			case c.refused != "" && !strings.Contains(why, c.refused):
				t.Errorf("refused: %q", why)
			case c.refused == "" && (why != "" || string(bytesOf(got[c.rel].Content)) != c.want):
				t.Errorf("%s (-want +got):\n%s", why, cmp.Diff(c.want, string(bytesOf(got[c.rel].Content))))
			}
		})
	}
}

// TestPatchesOfNamesThatGitQuotes lets git write patches of files with such names, and has each name known again.
func TestPatchesOfNamesThatGitQuotes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain.md", "a b.md", "Über uns.md", "手順/確認.md", "🙂.md", `"quoted".md`, `back\slash.md`,
		"a\ttab.md", "a\nline.md", "\a\b\f\v\r.md", "'.md", "a\" b.md", "\u0301.md"} {
		dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{name: "a\n"})
		env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		var out []byte
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"diff"}} {
			if args[0] == "diff" {
				operationtest.WriteFiles(t, dir, map[string]string{name: "b\n"})
			}
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = dir, env
			var err error
			if out, err = cmd.Output(); err != nil {
				t.Fatal(err)
			}
		}
		if why := (patchFile{rel: name, text: string(out)}).bad(); why != "" {
			t.Errorf("%q: %s\n%s", name, why, out)
		}
		if why := (patchFile{rel: name + "x", text: string(out)}).bad(); !strings.Contains(why, "must both name") {
			t.Errorf("%q as the patch of another file: %q", name, why)
		}
	}
}

// patchSeeds are patches of SKILL.md with what patches of procedures have.
func patchSeeds() (out []string) {
	for _, hunks := range []string{
		"@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\r\n-a\r\n+b\r\n", "@@ -1,0 +1,2 @@\n+\ufeff# x\n+\t- tab\n",
		"@@ -1 +1 @@ ## Übergabe\n-a\n\\ No newline at end of file\n+手順 🙂\n\\ No newline at end of file\n",
		"@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n@@ -90,2 +90,3 @@\n y\n+--- a/x\n z\n", "@@ -1 +0,0 @@\n---- old\n",
		"@@ -0,0 +1 @@\n++++ b/x\n", "@@ -1 +1 @@\n-a\n+" + strings.Repeat("long ", 3000) + "\n",
		"@@ -1,9 +1,9 @@\n a\n", "@@ -1 +1 @@\n-a\n+b\nrename from x\nrename to y\n", "@@ -999999999,1 +1 @@\n-a\n+b\n",
		"@@@ -1 -1 +1 @@@\n",
	} {
		out = append(out, "--- a/SKILL.md\n+++ b/SKILL.md\n"+hunks,
			"diff --git a/SKILL.md b/SKILL.md\nindex 1..2 100644\n--- a/SKILL.md\t2026-01-01\n+++ b/SKILL.md\t2026-01-01\n"+
				hunks)
	}
	return out
}

// FuzzOverlay reads overlays of any kind, with files of any name: each is laid over the module, or refused with a code.
func FuzzOverlay(f *testing.F) {
	f.Add(`{"overlay_kind":"dir"}`, "SKILL.md", "new\n")
	f.Add(`{"overlay_kind":"patch"}`, ".agentpack/patches/SKILL.md.patch",
		"--- a/SKILL.md\n+++ b/SKILL.md\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add(`{"overlay_kind":"patch"}`, ".agentpack/patches/../../../x.patch", "--- a/x\n+++ b/x\n")
	f.Add(`{`, "deep/er.md", "")
	f.Add(`{"overlay_kind":1}`, ".agentpack/patches/.patch", "\x00")
	for _, text := range append(patchSeeds(), "---\r\nname: x\r\n---\r\n", "\ufeff# x", "no newline",
		"\t- tab\n  - inner\n", "手順 🙂\n", strings.Repeat("long ", 3000)) {
		f.Add(`{"overlay_kind":"patch"}`, ".agentpack/patches/SKILL.md.patch", text)
		f.Add(`{"overlay_kind":"dir"}`, "Übergabe/a b.md", text)
	}
	m := Module{ID: "m", Type: Skill}
	f.Fuzz(func(t *testing.T, kind, name, text string) {
		clean := filepath.ToSlash(filepath.Clean(name))
		if fileset.Leaves(name) != "" || len(clean) > 200 || strings.HasSuffix(name, "/") || clean == "." ||
			clean == ".agentpack" || clean == ".agentpack/overlay.json" ||
			strings.HasPrefix(clean, ".agentpack/overlay.json/") {
			return
		}
		dir := operationtest.WriteFiles(t, t.TempDir(),
			map[string]string{"overlays/" + fsKey("m") + "/.agentpack/overlay.json": kind})
		file := filepath.Join(dir, "overlays", fsKey("m"), filepath.FromSlash(clean))
		if os.MkdirAll(filepath.Dir(file), 0o755) != nil || os.WriteFile(file, []byte(text), 0o600) != nil {
			return // no name of a file
		}
		root, err := files.OpenDir(dir)
		must.Do(t, err)
		defer func() { _ = root.Close() }()
		base := fileset.Tree{"SKILL.md": {Content: fileset.Bytes([]byte("a\n"))}}
		got, err := overlaid(t.Context(), root, m, base, levelsIn(root, "box", "p"), fakePatch)
		if err != nil {
			if codeOf(err) == "" {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		for _, p := range top(got).Paths() {
			if fileset.Leaves(p) != "" || strings.HasPrefix(p, ".agentpack") || strings.HasPrefix(p, ".git/") {
				t.Errorf("the module has %q", p)
			}
		}
		if string(bytesOf(base["SKILL.md"].Content)) != "a\n" {
			t.Error("the module itself was changed")
		}
	})
}

// FuzzPatchByGit hands git what the check lets through: whatever a patch says, it changes the one file that it is for.
func FuzzPatchByGit(f *testing.F) {
	program := gitProgram(f)
	f.Add("--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -1 +1,2 @@\n a\n+b\n\\ No newline at end of file\n")
	for _, seed := range patchSeeds() {
		f.Add(strings.ReplaceAll(seed, "SKILL.md", "m/SKILL.md"))
	}
	f.Add("diff --git a/x b/x\nnew file mode 120000\n--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -0,0 +1 @@\n+/etc/passwd\n")
	f.Add(
		"--- a/m/SKILL.md\n+++ b/m/SKILL.md\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\nrename from m/SKILL.md\nrename to ../y\n")
	f.Fuzz(func(t *testing.T, text string) {
		if (patchFile{rel: "m/SKILL.md", text: text}).bad() != "" {
			return
		}
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		operationtest.WriteFiles(t, temp, map[string]string{"y": "outside\n", "home/.keep": ""})
		g := newGit(program, filepath.Join(temp, "home"), filepath.Join(temp, "home"), gitEnv())
		after, failure, err := g.Patch(t.Context(), "m/SKILL.md", "a\n", text)
		if err != nil && after != "" || failure != "" && after != "" {
			t.Errorf("%q, %q, %v", after, failure, err)
		}
		entries, err := os.ReadDir(temp)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		outside, readErr := os.ReadFile(filepath.Join(temp, "y"))
		if diff := cmp.Diff([]string{"home", "y"}, names); diff != "" || string(outside) != "outside\n" || err != nil ||
			readErr != nil {
			t.Errorf("the patch %q reached beyond its file: %s, %q", text, diff, outside)
		}
	})
}

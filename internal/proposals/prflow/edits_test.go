package prflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

const manual = "# Disk\n\nOne.\nTwo.\nThree.\nTwo.\n"

// newDiskBench is a bench whose checks/disk.md has a content.
func newDiskBench(t *testing.T, content string) *bench {
	t.Helper()
	b := newBench(t)
	b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: content})
	return b
}

// newEditBench is a bench with a file worth editing.
func newEditBench(t *testing.T) *bench { return newDiskBench(t, manual) }

// edited is an update by pairs of old and new.
func edited(path string, pairs ...string) map[string]any {
	f, edits := file(path, "update"), []any{}
	for i := 0; i < len(pairs); i += 2 {
		edits = append(edits, map[string]any{"old": pairs[i], "new": pairs[i+1]})
	}
	f["edits"] = edits
	return f
}

func based(f map[string]any, sha string) map[string]any {
	f["base_sha"] = sha
	return f
}

func blobOf(text string) string { return gitprovider.BlobID([]byte(text), "") }

// contentAt returns the content of a file at a commit.
func (b *bench) contentAt(commit, path string) string {
	for _, f := range b.world().Files(commit) {
		if f.Path == path {
			return f.Content
		}
	}
	return ""
}

func TestEditsChangeOnlyWhatTheyName(t *testing.T) {
	t.Parallel()
	b := newEditBench(t)
	made := b.mustOpen(createRequest(files(based(edited("checks/disk.md", "One.", "1.", "1.\nTwo.\n", "1.\n2.\n"),
		blobOf(manual)[:7]),
		file("checks/old.md", "delete"), file("checks/new.md", "create", "a\nb\n"))))
	if got := b.contentAt(made.Commit, "checks/disk.md"); got != "# Disk\n\n1.\n2.\nThree.\nTwo.\n" {
		t.Errorf("the file holds %q", got)
	}
	want := []prflow.FileLines{{Path: "checks/disk.md", Added: 2, Removed: 2}, {Path: "checks/new.md", Added: 2},
		{Path: "checks/old.md", Removed: 1}}
	if len(made.Warnings) > 0 || !equal(made.Lines, want) {
		t.Errorf("warnings %q, lines %+v, want %+v", made.Warnings, made.Lines, want)
	}
}

func equal[T comparable](a, b []T) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// The same result is the same change, however it is said.
func TestEditsAndContentWithOneResultAreOneChange(t *testing.T) {
	t.Parallel()
	b := newEditBench(t)
	byEdits := createRequest(files(edited("checks/disk.md", "One.", "1.")))
	byContent := createRequest(files(file("checks/disk.md", "update", strings.Replace(manual, "One.", "1.", 1))))
	first := b.mustOpen(byEdits)
	for _, raw := range [][]byte{byEdits, byContent} {
		again := b.mustReuse(raw, first.Number)
		if len(again.Lines) != 1 || again.Lines[0].Added != 1 {
			t.Errorf("lines %+v", again.Lines)
		}
	}
}

func TestWhatDoesNotFitTheBaseIsAConflictThatShowsIt(t *testing.T) {
	t.Parallel()
	other := blobOf("other")
	for name, c := range map[string]struct {
		file map[string]any
		rule string
		says string
	}{
		"an edit of what is not there":   {edited("checks/disk.md", "Four.", "4."), "edits", "edits[0] does not fit"},
		"an edit of what is there twice": {edited("checks/disk.md", "Two.", "2."), "edits", "lines 4, 6"},
		"an edit of what an edit removed": {edited("checks/disk.md", "One.", "1.", "One.", "I."), "edits",
			"edits[1] does not fit"},
		"unfit edits of another version": {based(edited("checks/disk.md", "Four.", "4."), other[:7]), "base-sha",
			"not " + other[:7]},
		"content for another version": {based(file("checks/disk.md", "update", "x\n"), other), "base-sha",
			"not " + other},
		"a removal of another version": {based(file("checks/disk.md", "delete"), other), "base-sha", "not " + other},
		"a creation of what is there":  {file("checks/disk.md", "create", "x\n"), "exists", "already exists"},
		"a base_sha that is longer than it": {based(file("checks/disk.md", "delete"), blobOf(manual)+"0"), "base-sha",
			"blob " + blobOf(manual)[:12]},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dry := range []bool{false, true} {
				b := newEditBench(t)
				b.options.Authority.DryRun = dry
				e, row := b.mustRefuse(createRequest(files(c.file)), fault.Conflict)
				v := e.Violations[0]
				if len(e.Violations) != 1 || v.Rule != c.rule || !strings.Contains(v.Message, c.says) {
					t.Fatalf("violations %+v, want %s: %s", e.Violations, c.rule, c.says)
				}
				if p := v.Present; p == nil || p.BaseSHA != blobOf(manual) || p.Text != manual || p.Cut != "" ||
					!strings.Contains(p.Untrusted, "never") {
					t.Errorf("present %+v", p)
				}
				for _, verdict := range row.Verdicts {
					for _, v := range verdict.Violations {
						if v.Present != nil {
							t.Errorf("the record has %+v", v.Present)
						}
					}
				}
			}
		})
	}
}

func TestABaseSHAOfWhatIsNotThereIsAConflict(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"create", "update"} {
		b := newEditBench(t)
		e, _ := b.mustRefuse(createRequest(files(based(file("checks/none.md", action, "x\n"), blobOf("x")))), fault.Conflict)
		if e.Violations[0].Present != nil {
			t.Errorf("%s: present %+v", action, e.Violations[0].Present)
		}
	}
}

func TestMalformedEditsAreRefused(t *testing.T) {
	t.Parallel()
	both := edited("checks/disk.md", "One.", "1.")
	both["content"] = "x"
	create := edited("checks/new.md", "One.", "1.")
	create["action"] = "create"
	remove := edited("checks/disk.md", "One.", "1.")
	remove["action"] = "delete"
	none := file("checks/disk.md", "update")
	none["edits"] = []any{}
	for name, c := range map[string]struct {
		file map[string]any
		at   string
	}{
		"content, too":                {both, "files[0].edits"},
		"of a new file":               {create, "files[0].edits"},
		"of a removal":                {remove, "files[0].edits"},
		"none":                        {none, "files[0].content"},
		"neither":                     {file("checks/disk.md", "update"), "files[0].content"},
		"an empty old":                {edited("checks/disk.md", "", "x"), "files[0].edits[0].old"},
		"a short base_sha":            {based(edited("checks/disk.md", "One.", "1."), "abcdef"), "files[0].base_sha"},
		"a base_sha of no hex digits": {based(edited("checks/disk.md", "One.", "1."), "abcdefg"), "files[0].base_sha"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEditBench(t)
			e, _ := b.mustRefuse(createRequest(files(c.file)), fault.InvalidArgument)
			if e.Violations[0].Path != c.at {
				t.Errorf("violations %+v, want one at %s", e.Violations, c.at)
			}
		})
	}
}

// What edits make is judged like any content: a secret of two halves, a size that only the whole has.
func TestTheGatesJudgeWhatEditsMake(t *testing.T) {
	t.Parallel()
	half := len(ownToken) / 2
	for name, c := range map[string]struct {
		base, old, new string
		code           fault.Code
		rule           string
	}{
		"a secret in the new text": {"x\n", "x", ownToken, fault.ContentDenied, "secret:"},
		"a secret of which one half is there": {ownToken[:half] + "X\n", "X", ownToken[half:], fault.ContentDenied,
			"secret:"},
		"a hidden character": {"x\n", "x", "a\u202eb", fault.ContentDenied, "hidden-character"},
		"a file that grows too large": {strings.Repeat("a", 250<<10) + "X\n", "X", strings.Repeat("b", 10<<10),
			fault.ContentDenied, "file-size"},
		"a base that is not text": {"x\xff\n", "x", "y", fault.ContentDenied, "binary"},
		"a base that is too large": {strings.Repeat("a", gitprovider.MaxContentRead) + "X", "X", "y",
			fault.ContentDenied, "file-size"},
		"nothing": {"x\n", "x", "x", fault.NoChange, "identical"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDiskBench(t, c.base)
			e, _ := b.mustRefuse(createRequest(files(edited("checks/disk.md", c.old, c.new))), c.code)
			if !strings.HasPrefix(e.Violations[0].Rule, c.rule) || strings.Contains(e.Message, ownToken) {
				t.Errorf("violations %+v, want %s", e.Violations, c.rule)
			}
		})
	}
}

func TestTheShownTextIsCleanShortAndWithoutOurTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ base, text, cut string }{
		"a long file": {strings.Repeat("ä", 20<<10), strings.Repeat("ä", 8<<10),
			"only the first 16384 of 40960 bytes"},
		"hidden characters":       {"a\u202eb\n", "ab\n", "without characters"},
		"no text":                 {"\xff\n", "", "not text"},
		"a token":                 {"a " + ownToken + "\n", "a [redacted]\n", ""},
		"a file that is not read": {strings.Repeat("a", gitprovider.MaxContentRead+1), "", "not shown"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDiskBench(t, c.base)
			e, _ := b.mustRefuse(createRequest(files(file("checks/disk.md", "create", "x\n"))), fault.Conflict)
			p := e.Violations[0].Present
			if p == nil || p.BaseSHA != blobOf(c.base) || p.Text != c.text || !strings.Contains(p.Cut, c.cut) {
				t.Errorf("present %.200v", p)
			}
		})
	}
}

func TestWholeContentOfNobodyKnowsWhichVersionIsAWarning(t *testing.T) {
	t.Parallel()
	shorter, longer := "# Disk\n", manual+"Four.\n"
	for name, c := range map[string]struct {
		file  map[string]any
		warns bool
	}{
		"lines go":               {file("checks/disk.md", "update", shorter), true},
		"lines come":             {file("checks/disk.md", "update", longer), false},
		"the version is known":   {based(file("checks/disk.md", "update", shorter), blobOf(manual)[:8]), false},
		"upper case is the same": {based(file("checks/disk.md", "update", shorter), strings.ToUpper(blobOf(manual))), false},
		"by edits":               {edited("checks/disk.md", "\nOne.\n", "\n"), false},
		"the whole file goes":    {file("checks/disk.md", "delete"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEditBench(t)
			made := b.mustOpen(createRequest(files(c.file)))
			const says = "checks/disk.md (lines removed: 5)"
			body := b.body(made.Number)
			footer := strings.TrimPrefix(body, prflow.AgentText(body))
			if got := len(made.Warnings) == 1 && strings.Contains(made.Warnings[0], says); got != c.warns || !c.warns &&
				len(made.Warnings) > 0 {
				t.Errorf("warnings %q", made.Warnings)
			}
			if strings.Contains(footer, says) != c.warns {
				t.Errorf("the footer says %q", footer)
			}
		})
	}
}

func TestADryRunByEditsIsPromotedAsItWasShown(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} { // another file on the base
		b := newEditBench(t)
		id := b.dryRun(createRequest(files(edited("checks/disk.md", "One.\n", ""))))
		if moved {
			b.world().Push("main", providertest.File{Path: "README.md", Content: "# Another file\n"})
		}
		made, err := b.promote(id)
		if err != nil || b.contentAt(made.Commit, "checks/disk.md") != strings.Replace(manual, "One.\n", "", 1) ||
			len(made.Warnings) > 0 {
			t.Errorf("another file has moved: %t: %+v, %v", moved, made, err)
		}
	}
}

func TestADryRunIsNotPromotedOntoAFileThatHasMoved(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]map[string]any{
		"by edits":     edited("checks/disk.md", "One.\n", ""),
		"by base_sha":  based(file("checks/disk.md", "update", manual+"More.\n"), blobOf(manual)[:8]),
		"as a whole":   file("checks/disk.md", "update", manual+"More.\n"),
		"as a removal": file("checks/disk.md", "delete"),
	} {
		t.Run(name, func(t *testing.T) {
			b := newEditBench(t)
			id := b.dryRun(createRequest(files(shown)))
			b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: manual + "Merged since.\n"})
			e := fault.From(b.mustNotPromote(fault.Conflict, id))
			if e.Violations[0].Rule != "base-sha" || e.Violations[0].Present == nil {
				t.Errorf("got %v", e)
			}
		})
	}
}

func TestOfALongFileAConflictShowsWhatSurroundsThePlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d of the manual\n", i+1)
	}
	b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: long.String()})
	for name, c := range map[string]struct {
		change           map[string]any
		has, hasNot, cut string
	}{
		"near matches": {edited("checks/disk.md", "line 2000 of the  manual\nline 2001 of the manual", "x"), "line 2000 of",
			"line 1 of",
			"only the lines 1980 to 2020 of 3001"},
		"nothing like it": {edited("checks/disk.md", "zebra", "x"), "line 1 of", "line 2000 of", "only the first 16384 of"},
		"another version": {based(file("checks/disk.md", "update", "x\n"), "0123456"), "line 1 of", "line 2000 of",
			"only the first 16384 of"},
		"one word": {edited("checks/disk.md", "line 2000 of the manuals", "x"), "line 2000 of", "line 1 of",
			"only the lines 1980 to 2020 of 3001"},
	} {
		e, _ := b.mustRefuse(createRequest(files(c.change)), fault.Conflict)
		p := e.Violations[0].Present
		if p == nil || !strings.Contains(p.Text, c.has) || strings.Contains(p.Text, c.hasNot) ||
			!strings.Contains(p.Cut, c.cut) || len(p.Text) > 16<<10 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A caller who names the version they have read is told what has changed since, if the whole text is too long.
func TestOfALongFileAConflictShowsWhatHasChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("a line of the manual\n", 2000)
	now := strings.Replace(long, "a line", "THE line", 1)
	for _, text := range []string{long, long + "token " + ownToken + "\n", now} {
		b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: text})
	}
	for name, c := range map[string]struct {
		base string
		diff bool
	}{
		"what was read":                 {blobOf(long), true},
		"what nobody has":               {strings.Repeat("1", 40), false},
		"a part of the id":              {blobOf(long)[:12], false},
		"a version that held a secret":  {blobOf(long + "token " + ownToken + "\n"), false},
		"what was read, in upper cases": {strings.ToUpper(blobOf(long)), true},
	} {
		e, _ := b.mustRefuse(createRequest(files(based(file("checks/disk.md", "update", "x\n"), c.base))), fault.Conflict)
		p := e.Violations[0].Present
		if (p.Diff != "") != c.diff || (p.Text != "") == c.diff || p.BaseSHA != blobOf(now) ||
			!strings.Contains(p.Cut, "claudeops://joe/infra/file/checks/disk.md") || strings.Contains(p.Diff, ownToken) {
			t.Errorf("%s: %.300v", name, p)
		}
		if c.diff && (!strings.Contains(p.Diff, "\n-a line of the manual\n+THE line of the manual\n") || len(p.Diff) > 500) {
			t.Errorf("%s: the difference is %s", name, p.Diff)
		}
	}
}

// What was read before somebody else changed another part of the file is still right about the parts that it replaces.
func TestEditsOfAnOlderTextAreTakenWhereTheirPartsAreAsTheyWere(t *testing.T) {
	t.Parallel()
	b := newEditBench(t)
	made := b.mustOpen(createRequest(files(based(edited("checks/disk.md", "One.", "1."), blobOf("what was read")))))
	if got := b.contentAt(made.Commit, "checks/disk.md"); got != strings.Replace(manual, "One.", "1.", 1) {
		t.Errorf("the file holds %q", got)
	}
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "Changed since it was read") ||
		!strings.Contains(made.Warnings[0], "checks/disk.md") {
		t.Errorf("warnings %q", made.Warnings)
	}
}

func TestWhatIsOnTheBaseAlreadyIsNoChangeWhicheverWayItIsSent(t *testing.T) {
	t.Parallel()
	const added = "Two.\nThree.\nTwo.\n"
	gone := "One.\nAnd a half, which was taken out."
	for name, file := range map[string]map[string]any{
		"content":                  file("checks/disk.md", "update", manual),
		"content of an older text": based(file("checks/disk.md", "update", manual), blobOf("old")),
		"a creation":               file("checks/disk.md", "create", manual),
		"edits":                    edited("checks/disk.md", "Zero.\n"+added, added),
		"edits of an older text":   based(edited("checks/disk.md", gone+"\n"+added, added), blobOf("old")),
		"a part that is added":     edited("checks/disk.md", "Two.\nThree.\n", "Two.\nThree.\nTwo.\n"),
		"a part added to an older text": based(edited("checks/disk.md", "Two.\nThree.\n", "Two.\nThree.\nTwo.\n"),
			blobOf("old")),
		"the removal of what is gone": file("checks/gone.md", "delete"),
	} {
		t.Run(name, func(t *testing.T) {
			b := newEditBench(t)
			e, _ := b.mustRefuse(createRequest(files(file)), fault.NoChange)
			if len(e.Violations) != 1 || e.Violations[0].Code != fault.NoChange {
				t.Errorf("%+v", e.Violations)
			}
		})
	}
}

func TestFilesOfAConflictShareTheRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("A line of a manual that is long.\n", 2000)
	b.world().Push("main", providertest.File{Path: "checks/a.md", Content: long},
		providertest.File{Path: "checks/b.md", Content: "short\n"},
		providertest.File{Path: "checks/c.md", Content: "C\n" + long})
	e, _ := b.mustRefuse(createRequest(files(edited("checks/a.md", "none", "x"), edited("checks/b.md", "none", "x"),
		edited("checks/c.md", "none", "x"))), fault.Conflict)
	sum := 0
	for i, least := range []int{8000, 6, 8000} {
		p := e.Violations[i].Present
		if p == nil || len(p.Text) < least {
			t.Fatalf("%d: %+v", i, p)
		}
		sum += len(p.Text)
	}
	if sum > 16<<10 || e.Violations[1].Present.Cut != "" {
		t.Errorf("%d bytes, %q", sum, e.Violations[1].Present.Cut)
	}
}

// What goes through a filter of .gitattributes, such as Git LFS, is stored as something else than was judged.
func TestAFileThatGoesThroughAFilterIsRefused(t *testing.T) {
	t.Parallel()
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
	for name, c := range map[string]struct {
		attributes providertest.File
		refused    bool
	}{
		"by the root's attributes": {providertest.File{Path: ".gitattributes",
			Content: "*.md filter=lfs -text\n"}, true},
		"by the folder's": {providertest.File{Path: "checks/.gitattributes",
			Content: "disk.md filter=crypt\n"}, true},
		"another file goes through it":    {providertest.File{Path: ".gitattributes", Content: "*.bin filter=lfs\n"}, false},
		"a pointer that no filter covers": {providertest.File{Path: "checks/disk.md", Content: pointer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.world().Push("main", c.attributes)
			raw := createRequest(files(file("checks/disk.md", "update", "# Disk\n\nAnother text.\n")))
			if !c.refused {
				result := b.mustOpen(raw)
				warned := strings.Contains(strings.Join(result.Warnings, "\n"), "pointers of Git LFS")
				if warned != (c.attributes.Content == pointer) {
					t.Errorf("warnings %q", result.Warnings)
				}
				return
			}
			e, _ := b.mustRefuse(raw, fault.ContentDenied)
			if v := e.Violations[0]; v.Rule != "filter" || v.Path != "checks/disk.md" || !v.Final {
				t.Errorf("%+v", v)
			}
			// Nothing is reserved: the same file is proposed at once when the filter is gone.
			b.world().Push("main", providertest.File{Path: c.attributes.Path, Content: "# none\n"})
			b.mustOpen(raw)
		})
	}
}

// What was invisible before and is left as it was keeps nobody from changing something else on its
// line, and a caller
// who was shown the file without it need not know of it. Persian needs U+200C.
func TestInvisibleCharactersThatWereThereBeforeStay(t *testing.T) {
	t.Parallel()
	const persian = "\u0645\u06cc\u200c\u0631\u0648\u062f"
	base := "\ufeff# Disk\n\nfirst " + persian + " second " + persian + " last\n"
	for name, c := range map[string]struct {
		old, new string
		want     string // "" is refused
	}{
		"another word of the line": {"second", "2nd", strings.Replace(base, "second", "2nd", 1)},
		"the line after the mark":  {"# Disk", "# Disks", strings.Replace(base, "# Disk", "# Disks", 1)},
		"a part over the character": {"second " + strings.ReplaceAll(persian, "\u200c", "") + " last",
			"second x last", "\ufeff# Disk\n\nfirst " + persian + " second x last\n"},
		"a new one": {"second", "se\u200ccond", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDiskBench(t, base)
			raw := createRequest(files(edited("checks/disk.md", c.old, c.new)))
			if c.want == "" {
				b.mustRefuse(raw, fault.ContentDenied)
				return
			}
			made := b.mustOpen(raw)
			if got := b.contentAt(made.Commit, "checks/disk.md"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTheEndsOfLinesOfAFileAreKeptOrWarnedOf(t *testing.T) {
	t.Parallel()
	both := file("checks/disk.md", "update", "# Disk\n\nall new\n")
	both["edits"] = []any{} // as some clients fill in what is not given
	for name, c := range map[string]struct {
		change map[string]any
		want   string
		warned bool
	}{
		"edits": {edited("checks/disk.md", "One.", "1.\n2."), "# Disk\r\n\r\n1.\r\n2.\r\n", false},
		"whole content": {file("checks/disk.md", "update", "# Disk\n\nall new\n"),
			"# Disk\n\nall new\n", true},
		"whole content beside empty edits": {both, "# Disk\n\nall new\n", true},
		"whole content that keeps them": {file("checks/disk.md", "update", "# Disk\r\n\r\n1.\r\n"),
			"# Disk\r\n\r\n1.\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDiskBench(t, "# Disk\r\n\r\nOne.\r\n")
			made := b.mustOpen(createRequest(files(c.change)))
			if got := b.contentAt(made.Commit, "checks/disk.md"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if warned := strings.Contains(strings.Join(made.Warnings, "\n"), "ends of all lines"); warned != c.warned {
				t.Errorf("warnings %q", made.Warnings)
			}
		})
	}
}

// A skill that no agent loads, or reads otherwise than it is meant, is said to be one.
func TestASkillThatMayNotBeUsedIsWarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, warns string }{
		"sound":           {"---\nname: disk\ndescription: Look at disks\n---\nText\n", ""},
		"a colon":         {"---\nname: disk\ndescription: Use when: x\n---\nText\n", "line 3: "},
		"no description":  {"---\nname: disk\n---\nText\n", "has no description"},
		"no front matter": {"# Disk\n", "no front matter"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			made := b.mustOpen(createRequest(files(file(".claude-ops/skills/disk/SKILL.md", "create", c.text))))
			if said := strings.Join(made.Warnings, "\n"); !strings.Contains(said, c.warns) ||
				strings.Contains(said, "as a skill") != (c.warns != "") {
				t.Errorf("warnings %q, want %q", said, c.warns)
			}
		})
	}
}

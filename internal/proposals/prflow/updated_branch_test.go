package prflow_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// update brings the branch of #1 up to date, as a person does, with files of theirs.
func (b *bench) update(rebase bool, files ...providertest.File) {
	b.Helper()
	b.world().(providertest.BranchUpdater).UpdateBranch(1, rebase, files...)
}

func TestABranchThatAPersonBroughtUpToDateIsRevised(t *testing.T) {
	t.Parallel()
	moved := func(b *bench) { b.world().Push("main", providertest.File{Path: "README.md", Content: "newer\n"}) }
	for name, do := range map[string]func(b *bench){
		"merged": func(b *bench) { moved(b); b.update(false) },
		"merged twice": func(b *bench) {
			moved(b)
			b.update(false)
			b.world().Push("main", providertest.File{Path: "README.md", Content: "newest\n"})
			b.update(false)
		},
		"rebased":            func(b *bench) { moved(b); b.update(true) },
		"merged and rebased": func(b *bench) { moved(b); b.update(false); b.update(true) },
		"an executable elsewhere": func(b *bench) {
			b.world().Push("main", providertest.File{Path: "run.sh", Content: "x", Executable: true})
			b.update(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			first := b.reviewed()
			do(b)
			head := b.pull(first.Number).HeadCommit
			result, err := b.create(revising(nil))
			if err != nil || !result.Revised {
				t.Fatalf("%+v, %v", result, err)
			}
			tip := b.pull(first.Number)
			if parents := b.world().Parents(tip.HeadCommit); len(parents) != 1 || parents[0] != head {
				t.Errorf("the parents of the revision are %v, want %s", parents, head)
			}
			if again, err := b.create(revising(nil)); err != nil || !again.Reused {
				t.Errorf("the identical call: %+v, %v", again, err)
			}
			b.update(true)
			b.ask(first.Number, "And why?")
			more := revising(func(r map[string]any) {
				r["files"] = []any{map[string]any{"path": "checks/inodes.md", "action": "update",
					"content": "# Inodes\n\ndf -i, since files run out\n"}}
			})
			if result, err = b.create(more); err != nil || !result.Revised {
				t.Errorf("after another update: %+v, %v", result, err)
			}
		})
	}
}

// A person brings the branch up to date after the base branch has changed other lines of the same file.
func TestAFileThatWasMergedWithTheBaseBranchIsStillOurs(t *testing.T) {
	t.Parallel()
	const was = "# Disk\n\none\ntwo\nthree\nfour\nfive\n"
	both := strings.Replace(strings.Replace(was, "two", "TWO", 1), "five", "FIVE", 1)
	for name, c := range map[string]struct {
		person  func(b *bench)
		refused bool
	}{
		"merged":  {func(b *bench) { b.update(false) }, false},
		"rebased": {func(b *bench) { b.update(true) }, false},
		"merged, with a line of theirs": {func(b *bench) {
			b.update(false, providertest.File{Path: "checks/disk.md", Content: both + "theirs\n"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: was})
			first := b.mustOpen(request(files(edited("checks/disk.md", "two", "TWO"))))
			b.ask(first.Number, "Say more.")
			b.world().Push("main", providertest.File{Path: "checks/disk.md", Content: strings.Replace(was, "five", "FIVE", 1)})
			c.person(b)
			more := edited("checks/disk.md", "three", "THREE")
			more["base_sha"] = gitprovider.BlobID([]byte(both), b.tip("main"))
			if c.refused {
				delete(more, "edits")
				delete(more, "base_sha")
				more["content"] = "x\n"
			}
			result, err := b.create(revising(files(more)))
			if c.refused {
				if e := fault.From(err); e.Code != fault.Conflict || e.Violations[0].Rule != "head" {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || !result.Revised {
				t.Fatalf("%+v, %v", result, err)
			}
			if got := b.content(first.Branch, "checks/disk.md"); got != strings.Replace(both, "three", "THREE", 1) {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

func TestABranchThatBringsSomethingOfAPersonIsNotRevised(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(b *bench){
		"another file":     func(b *bench) { b.update(false, providertest.File{Path: "checks/mine.md", Content: "x\n"}) },
		"our file changed": func(b *bench) { b.update(false, providertest.File{Path: "checks/inodes.md", Content: "x\n"}) },
		"our file made executable": func(b *bench) {
			b.update(false, providertest.File{Path: "checks/inodes.md", Content: "# Inodes\n", Executable: true})
		},
		"a rebase with another file": func(b *bench) {
			b.update(true,
				providertest.File{Path: "checks/mine.md", Content: "x\n"})
		},
		"a commit": func(b *bench) {
			b.world().Push(b.pull(1).Branch, providertest.File{Path: "checks/mine.md", Content: "x\n"})
		},
		"a commit and an update": func(b *bench) {
			b.world().Push(b.pull(1).Branch, providertest.File{Path: "checks/inodes.md", Content: "x\n"})
			b.update(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			b.world().Push("main", providertest.File{Path: "README.md", Content: "newer\n"})
			do(b)
			before := b.world().Branches()
			_, err := b.create(revising(nil))
			e := fault.From(err)
			if e.Code != fault.Conflict || e.Violations[0].Rule != "head" || !strings.Contains(e.Message, `of "somebody"`) {
				t.Errorf("%v", err)
			}
			for branch, commit := range b.world().Branches() {
				if before[branch] != commit {
					t.Errorf("%s was written", branch)
				}
			}
		})
	}
}

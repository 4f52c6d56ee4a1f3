package prflow_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
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

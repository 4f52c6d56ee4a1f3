package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// changeOfPackages is a call's change to a workspace.
type changeOfPackages struct {
	workspace workspace
	before    *Lock
	after     *Lock
	trees     map[string]fileset.Tree // of packages that are installed
	models    map[string]*Manifest
	staged    map[string]bool // packages that wait in the stage
	touched   []string        // packages that are installed, again perhaps, or removed
	stage     string          // relative to the project; "" if no package has new files
	named     bool            // a person has named the platform
}

// transaction is a change that is being carried out, as it stands in .aam/.tmp/transaction.json. The next writer
// finishes or reverts what a killed process left.
//
// The order: packages' new folders are staged; the transaction is written; folders take their places, the old ones
// aside; platforms' files, by deploy's engine, which has a journal of its own; sections; the lock file; the
// transaction's end.
type transaction struct {
	Stage   string     `json:"stage"`   // with new/ and old/; relative to the project
	New     []string   `json:"new"`     // folders of packages that wait in new/
	Gone    []string   `json:"gone"`    // folders of packages that go
	Touched []string   `json:"touched"` // names of packages whose files in platforms change
	Edits   []textEdit `json:"edits"`   // sections
	Before  []byte     `json:"before"`  // the lock file; nil for none
	After   []byte     `json:"after"`

	named bool // a person has named the platform; the file is the project's, and says nothing of it
}

// textEdit changes a file that others write, too.
type textEdit struct {
	Path   string `json:"path"`   // relative to the project
	Before []byte `json:"before"` // nil for no file
	After  []byte `json:"after"`
}

// Where a change stands while it is carried out, relative to the project.
const (
	temporary       = workspaceName + "/.tmp"
	transactionFile = temporary + "/transaction.json"
)

// carryOut checks a change as a whole, and does it. In a dry run it only checks. notes tell what was left as it is.
func (s *Service) carryOut(ctx context.Context, c *changeOfPackages, dryRun bool) (notes []string, err error) {
	leave, err := s.leaving(ctx, c.named)
	if err != nil {
		return nil, err
	}
	desired, left, err := s.desired(c.after, c.touched, func(name Name) (fileset.Tree, *Manifest, error) {
		return c.trees[name.String()], c.models[name.String()], nil
	}, leave)
	if err != nil {
		return nil, err
	}
	if notes, err = s.allowed(ctx, desired); err != nil {
		return nil, err
	}
	notes = append(left, notes...)
	edits, more, err := c.sections()
	if err != nil || dryRun {
		return append(notes, more...), err
	}
	t, err := c.transaction(edits, s.settings.Now())
	if err != nil {
		return nil, err
	}
	root, err := files.OpenWriting(c.workspace.Project)
	if err != nil {
		return nil, unwritable(c.workspace.dir(), err)
	}
	defer func() { _ = root.Close() }()
	if err := s.reached("staged"); err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err == nil {
		err = root.Put(transactionFile, text, 0o600)
	}
	if err != nil {
		return nil, unwritable(transactionFile, err)
	}
	last, err := s.finishTransaction(ctx, root, t)
	if err != nil && ctx.Err() != nil {
		return nil, leftToNext(err)
	}
	if err != nil && !errors.As(err, &died{}) {
		if back := s.takeBack(context.WithoutCancel(ctx), root, t); back != nil {
			return nil, errors.Join(err, back)
		}
	}
	return slices.Concat(notes, more, last), err
}

// leftToNext is the error of a call whose time ended halfway: taking back what it did would take its time once more.
func leftToNext(err error) error {
	return newError(LimitReached, "the call was ended while packages were put in place; the next call goes on where it was").
		Because(err)
}

// died stands for the end of the process, in tests.
type died struct{}

func (died) Error() string { return "killed" }

func (c *changeOfPackages) transaction(edits []textEdit, now time.Time) (*transaction, error) {
	t := &transaction{Stage: c.stage, Touched: c.touched, Edits: edits, named: c.named}
	if t.Stage == "" {
		t.Stage = temporary + "/change"
	}
	for _, name := range c.touched {
		n, err := parseName(name)
		if err != nil {
			return nil, err
		}
		if _, stays := c.after.Packages[name]; !stays {
			t.Gone = append(t.Gone, n.folderName())
		} else if c.staged[name] {
			t.New = append(t.New, n.folderName())
		}
	}
	var err error
	if t.Before, err = readBelow(c.workspace.Project, c.workspace.lockFile(), maxLockBytes); err != nil {
		return nil, unwritable(c.workspace.lockFile(), err)
	}
	if len(c.after.Packages) > 0 {
		t.After, err = c.after.encodeLock(now)
	}
	return t, err
}

// finishTransaction does what is left of a transaction, from wherever it was left.
func (s *Service) finishTransaction(ctx context.Context, root *files.Writing, t *transaction) (notes []string,
	err error) {
	if err := s.reached("transaction"); err != nil {
		return nil, err
	}
	for _, folder := range t.New {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := t.takePlace(root, folder); err != nil {
			return nil, err
		}
		if err := s.reached("folder"); err != nil {
			return nil, err
		}
	}
	if notes, err = s.putFiles(ctx, &root.Dir, t.After, t.Touched, t.named); err != nil {
		return nil, err
	}
	for _, folder := range t.Gone {
		if err := s.reached("folder"); err != nil {
			return nil, err
		}
		if err := t.aside(root, folder); err != nil {
			return nil, err
		}
	}
	for _, e := range t.Edits {
		if err := s.reached("section"); err != nil {
			return nil, err
		}
		note, err := e.do(root)
		if err != nil {
			return nil, err
		}
		notes = append(notes, note...)
	}
	if err := s.reached("sections"); err != nil {
		return nil, err
	}
	if err := replaceLock(root, t.After); err != nil {
		return nil, err
	}
	if err := s.reached("lock"); err != nil {
		return nil, err
	}
	return notes, s.removeTransaction(root)
}

// removeTransaction removes the transaction, then what it had put aside.
func (s *Service) removeTransaction(root *files.Writing) error {
	if err := root.Remove(transactionFile); err != nil {
		return unwritable(transactionFile, err)
	}
	if err := s.reached("end"); err != nil {
		return err
	}
	_ = root.RemoveAll(temporary)                     // the next call does it otherwise
	_ = root.Remove(workspaceName + "/" + "packages") // if it is empty
	return nil
}

// takeBack undoes what was done of a transaction, from wherever it was left.
func (s *Service) takeBack(ctx context.Context, root *files.Writing, t *transaction) error {
	for _, folder := range slices.Concat(t.New, t.Gone) {
		if err := t.putBack(root, folder, slices.Contains(t.New, folder)); err != nil {
			return err
		}
	}
	if _, err := s.putFiles(ctx, &root.Dir, t.Before, t.Touched, t.named); err != nil {
		return err
	}
	for _, e := range t.Edits {
		e.Before, e.After = e.After, e.Before
		if _, err := e.do(root); err != nil {
			return err
		}
	}
	if err := replaceLock(root, t.Before); err != nil {
		return err
	}
	return s.removeTransaction(root)
}

// lockAndRepair takes the lock of the workspace, and repairs what a killed process left. A dry run does neither.
func (s *Service) lockAndRepair(ctx context.Context, dryRun bool) (unlock func(), notes []string, err error) {
	if dryRun {
		return func() {}, nil, nil
	}
	w := workspace{s.settings.Project}
	unlock, err = w.lockFolder(ctx)
	if err != nil {
		return nil, nil, err
	}
	if notes, err = s.mend(ctx, w); err != nil {
		unlock()
		return nil, nil, err
	}
	return unlock, notes, nil
}

// lockFolder keeps other processes from writing the workspace. The folder itself is locked, so that no file is left;
// where that cannot be, a file in it.
func (w workspace) lockFolder(ctx context.Context) (unlock func(), err error) {
	folder, err := openWithin(w.Project, w.dir())
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	defer func() { _ = folder.Close() }()
	file, err := folder.Itself()
	if err == nil {
		if _, lockErr := files.TryLock(file, false); lockErr != nil {
			_ = file.Close()
			file, err = folder.OpenLock(".lock")
		}
	}
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	if err = lock(ctx, file); err == nil {
		return func() { _ = file.Close() }, nil
	}
	_ = file.Close()
	if errors.Is(err, errBusy) {
		return nil, busy(w.dir())
	}
	return nil, unwritable(w.dir(), err)
}

// mend finishes what a killed process left, or reverts it if it cannot be finished, and removes what was only staged.
func (s *Service) mend(ctx context.Context, w workspace) (notes []string, err error) {
	t, err := w.pending()
	if err != nil {
		return nil, err
	}
	root, err := files.OpenWriting(w.Project)
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	defer func() { _ = root.Close() }()
	if t == nil {
		if err := root.RemoveAll(temporary); err != nil {
			return nil, unwritable(w.dir(), err)
		}
		return nil, nil
	}
	said := "a change of the packages that was cut off was finished"
	if more, err := s.finishTransaction(ctx, root, t); err != nil && ctx.Err() != nil {
		return nil, leftToNext(err)
	} else if err != nil {
		if back := s.takeBack(ctx, root, t); back != nil {
			return nil, errors.Join(err, back)
		}
		said = "a change of the packages that was cut off could not be finished, and was taken back: " + err.Error()
	} else {
		notes = more
	}
	return append([]string{said}, notes...), nil
}

// pending returns the transaction that a killed process left; nil if there is none.
func (w workspace) pending() (*transaction, error) {
	text, err := readBelow(w.Project, filepath.Join(w.Project, filepath.FromSlash(transactionFile)), 4*maxLockBytes)
	if err != nil || text == nil {
		return nil, err
	}
	var t transaction
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, newError(ConfigInvalid, "%s, which a process that was cut off has left, cannot be read",
			transactionFile).Because(err)
	}
	return &t, nil
}

func packageFolder(folder string) string { return workspaceName + "/packages/" + folder }

// takePlace moves a package's old folder aside, and its new one to its place.
func (t *transaction) takePlace(root *files.Writing, folder string) error {
	fresh := t.Stage + "/new/" + folder
	if !root.Has(fresh) {
		return nil // it was done
	}
	if err := t.aside(root, folder); err != nil {
		return err
	}
	return move(root, fresh, packageFolder(folder))
}

// aside moves a package's folder out of the way.
func (t *transaction) aside(root *files.Writing, folder string) error {
	if !root.Has(packageFolder(folder)) {
		return nil
	}
	return move(root, packageFolder(folder), t.Stage+"/old/"+folder)
}

// putBack undoes takePlace and aside.
func (t *transaction) putBack(root *files.Writing, folder string, isNew bool) error {
	fresh, old, here := t.Stage+"/new/"+folder, t.Stage+"/old/"+folder, packageFolder(folder)
	if isNew && !root.Has(fresh) && root.Has(here) {
		if err := move(root, here, fresh); err != nil {
			return err
		}
	}
	if !root.Has(old) {
		return nil
	}
	return move(root, old, here)
}

func move(root *files.Writing, from, to string) error {
	if err := root.Move(from, to); err != nil {
		return unwritable(to, err)
	}
	return nil
}

// replaceLock writes the lock file; nil removes it.
func replaceLock(root *files.Writing, text []byte) error {
	name := workspaceName + "/aam-lock.yaml"
	var err error
	if text == nil {
		err = root.Remove(name)
	} else {
		err = root.Put(name, text, 0o644)
	}
	if err != nil {
		return unwritable(name, err)
	}
	return nil
}

// do makes an edit, unless it was made. note says that somebody has changed the file meanwhile, so that it was left as
// it is.
func (e textEdit) do(root *files.Writing) (note []string, err error) {
	now, _, err := root.Read(e.Path, maxTextBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nil
	case err != nil:
		return nil, unwritable(e.Path, err)
	case now == nil:
		now = []byte{}
	}
	switch {
	case sameContent(now, e.After):
		return nil, nil
	case !sameContent(now, e.Before):
		return []string{e.Path + " was changed meanwhile; it was left as it is"}, nil
	case e.After == nil:
		err = root.Remove(e.Path)
	default:
		err = root.Put(e.Path, e.After, 0o644)
	}
	if err != nil {
		return nil, unwritable(e.Path, err)
	}
	return nil, nil
}

// sameContent compares contents; no file is not an empty one.
func sameContent(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

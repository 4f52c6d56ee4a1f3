package packages

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// read fetches and checks the archives of what has to be installed, and stages them.
func (i *installing) read(ctx context.Context, choices []choice) error {
	i.cleanUp()
	i.fresh, i.trees, i.models, i.folders, i.done.Already = nil, map[string]change.Tree{}, map[string]*Manifest{}, nil, nil
	i.staged = map[string]bool{}
	for _, c := range choices {
		name := c.Name.String()
		if !i.changes(c) {
			if c.Asked {
				i.done.Already = append(i.done.Already, name)
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := i.fetch(c); err != nil {
			return blame(err, name)
		}
		i.fresh = append(i.fresh, c)
	}
	return nil
}

// fetch reads one package, from its registry or, if only a platform is to be added, from where it is installed.
func (i *installing) fetch(c choice) error {
	name := c.Name.String()
	if have, ok := i.view.lock.Packages[name]; ok && have.Version == c.Version.Version && (!i.order.Force || !c.Asked) {
		tree, m, err := installedTree(i.view.workspace, c.Name, have)
		i.trees[name], i.models[name] = tree, m
		return err
	}
	if err := i.folderIsFree(c.Name); err != nil {
		return err
	}
	if c.Version.Checksum == "" && i.view.config.values["security.require_checksum"] == true {
		return newError(IntegrityError, "the registry %q has no checksum of %s %s", c.Registry.Name, name, c.Version.Version).
			Suggest("set security.require_checksum to false to install it all the same")
	}
	packed, err := c.Registry.Archive(c.Name, c.Version)
	if err != nil {
		return err
	}
	if err := i.signed(); err != nil {
		return err
	}
	i.models[name] = packed.Manifest
	if i.order.DryRun {
		tree := change.Tree{}
		for _, f := range packed.Files {
			tree[f.Name] = change.TreeFile{Content: change.Bytes(f.Content), Executable: f.Executable}
		}
		i.trees[name] = tree
		return nil
	}
	i.trees[name], err = i.stagePackage(c.Name, packed)
	i.staged[name] = true
	return err
}

// signed applies the configuration's rule about signatures, which no package has.
func (i *installing) signed() error {
	if i.view.config.values["security.require_signature"] != true {
		return nil
	}
	switch i.view.config.text("security.on_signature_failure") {
	case "error":
		return newError(IntegrityError, "the configuration requires signatures, and packages have none").
			Suggest("set security.require_signature to false; checksums are verified all the same")
	case "warn":
		if note := "packages have no signatures, which the configuration asks for; their checksums were verified"; !slices.Contains(i.done.Notes, note) {
			i.done.Notes = append(i.done.Notes, note)
		}
	}
	return nil
}

// folderIsFree is AAM_NAME_CONFLICT if a package of another name has the folder.
func (i *installing) folderIsFree(name Name) error {
	if i.folders == nil {
		i.folders = map[string]string{}
		for other := range i.view.lock.Packages {
			if n, err := parseName(other); err == nil {
				i.folders[n.folder()] = other
			}
		}
	}
	if other, taken := i.folders[name.folder()]; taken && other != name.String() {
		return newError(NameConflict, "%s and %s would lie in the same folder", name,
			other).Suggest("uninstall one of them first")
	}
	i.folders[name.folder()] = name.String()
	return nil
}

// stagePackage writes a package to where it waits.
func (i *installing) stagePackage(name Name, packed *Packed) (change.Tree, error) {
	w := i.view.workspace
	root, err := files.OpenWriting(w.Project)
	if err != nil {
		return nil, unwritable(w.dir(), err)
	}
	defer func() { _ = root.Close() }()
	if i.stage == "" {
		i.stage = filepath.ToSlash(filepath.Join(temporary, rand.Text()))
	}
	folder := i.stage + "/new/" + name.folder()
	tree := change.Tree{}
	for _, f := range packed.Files {
		tree[f.Name] = change.TreeFile{Content: change.Bytes(f.Content), Executable: f.Executable}
	}
	if at, err := change.Stage(root, folder, tree); err != nil {
		return nil, unwritable(at, err)
	}
	return readTree(&root.Dir, folder)
}

func readTree(root *files.Dir, folder string) (change.Tree, error) {
	tree, ok, err := change.ReadTree(root, folder, nil)
	if err != nil || !ok {
		return nil, newError(IntegrityError, "%s cannot be read", folder).Because(cmp.Or(err, os.ErrNotExist))
	}
	return tree, nil
}

// unwritable returns the error for a file that cannot be written. A name that no file can have is not a matter of
// permissions.
func unwritable(name string, err error) error {
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return newError(InvalidArgument, "%s cannot be written: %s", name,
			reason(err)).Because(err).Suggest("give it a shorter name")
	}
	return newError(PermissionDenied, "%s cannot be written: %s", name,
		reason(err)).Because(err).Suggest("look at the rights of the folder and at the room on the disk")
}

// cleanUp removes what was staged and not used. A transaction that could neither be finished nor taken back still needs
// it.
func (i *installing) cleanUp() {
	root, err := files.OpenWriting(i.view.workspace.Project)
	if i.stage == "" || err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	if !root.Has(transactionFile) {
		_ = root.RemoveAll(i.stage)
		_ = root.Remove(temporary)
	}
	i.stage = ""
}

// installedTree returns the files of an installed package, held against what was recorded of them.
func installedTree(w workspace, name Name, have Locked) (change.Tree, *Manifest, error) {
	root, err := files.OpenDir(w.Project)
	if err != nil {
		return nil, nil, unwritable(w.Project, err)
	}
	defer func() { _ = root.Close() }()
	m, err := w.manifest(name)
	if err != nil {
		return nil, nil, err
	}
	tree, err := readTree(root, workspaceName+"/packages/"+name.folder())
	if err != nil {
		return nil, nil, err
	}
	if changed := have.changed(tree); len(changed) > 0 {
		return nil, nil, newError(IntegrityError, "files of the installed package %s were changed: %s", name,
			strings.Join(changed, ", ")).
			Suggest(fmt.Sprintf("install %s again with force", name))
	}
	return tree, m, nil
}

// changed lists the files that are other than recorded, missing, or too many.
func (l Locked) changed(tree change.Tree) []string {
	if l.FileChecksums == nil {
		return nil
	}
	var out []string
	for name, sum := range l.FileChecksums.Files {
		if f, ok := tree[name]; !ok || f.Content.SHA256() != sum {
			out = append(out, name)
		}
	}
	for name := range tree {
		if _, known := l.FileChecksums.Files[name]; !known {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

package local

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// RootFile is the file in a root that holds its identity: 16 to 64 lower-case letters and digits, and a line break. It
// is written once and is not secret. See docs/adr/0018-a-root-has-an-identity.md.
const RootFile = ".claudeops-root"

// unknownRoot stands for the identity of a root that has one which cannot be read. No root has it, so that no record
// matches that root.
const unknownRoot = "?"

const maxRootFile = 100 // bytes

// RootIdentity returns the identity of the root folder: "" if it has none yet or does not exist; an identity that
// matches no root if it cannot be read.
func RootIdentity(root string) string {
	id, err := readRoot(root)
	switch {
	case err == nil:
		return id
	case errors.Is(err, fs.ErrNotExist):
		return ""
	}
	return unknownRoot
}

func readRoot(root string) (string, error) {
	text, _, err := files.ReadPath(filepath.Join(root, RootFile), maxRootFile)
	if err != nil {
		return "", err
	}
	id := string(bytes.TrimSpace(text))
	if !regexp.MustCompile(`^[0-9a-z]{16,64}$`).MatchString(id) {
		return "", fmt.Errorf("%q is no identity", id)
	}
	return id, nil
}

// identityOf returns the identity of the root, and gives it one if it has none: of several processes at once, one does.
func identityOf(root string) (string, error) {
	id, err := readRoot(root)
	if errors.Is(err, fs.ErrNotExist) {
		const everybodyReads = 0o644
		if err := secretfile.Create(root, RootFile, everybodyReads,
			func() (string, error) { return strings.ToLower(rand.Text()) + "\n", nil }); err != nil {
			return "", fault.Wrap(err, fault.ProviderDisabled,
				"the folder of CLAUDEOPS_LOCAL_ROOT has no identity yet, and this user cannot write one there; "+
					"let it write the folder, or make the file once: od -An -N16 -tx1 /dev/urandom | tr -d ' ' > %s",
				filepath.Join(root, RootFile))
		}
		id, err = readRoot(root)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.ProviderDisabled,
			"the identity of the folder of CLAUDEOPS_LOCAL_ROOT cannot be read from %s; "+
				"restore that file, or correct its permissions", filepath.Join(root, RootFile))
	}
	return id, nil
}

// place is the root that a Provider has found, by its identity.
type place struct {
	mu sync.Mutex
	id string // "" until the first use
}

// arrive learns the identity of the root at the first use. A root that is exchanged while the process runs is refused:
// what is recorded would be of another one.
func arrive(p *Provider, root string) error {
	p.place.mu.Lock()
	defer p.place.mu.Unlock()
	id, err := identityOf(root)
	switch {
	case err != nil:
		return err
	case p.place.id == id:
		return nil
	case p.place.id != "":
		return fault.New(fault.ProviderDisabled,
			"the folder of CLAUDEOPS_LOCAL_ROOT is another one than when this process began (%s); restart claudeops", RootFile)
	}
	p.place.id = id
	return nil
}

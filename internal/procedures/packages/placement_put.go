package packages

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// putFiles makes platforms have what some packages want by the text of a lock file. The packages' folders are at their
// places.
func (s *Service) putFiles(ctx context.Context, root *files.Dir, text []byte, names []string,
	named bool) (notes []string, err error) {
	lock, err := parseLock(text)
	if err != nil {
		return nil, newError(InternalError, "the lock file of the change cannot be read").Because(err)
	}
	leave, err := s.leaving(ctx, named)
	if err != nil {
		return nil, err
	}
	w := workspace{s.settings.Project}
	d, _, err := s.desired(lock, names, func(n Name) (change.Tree, *Manifest, error) {
		m, err := w.manifest(n)
		if err != nil {
			return nil, nil, err
		}
		tree, err := readTree(root, packageFolder(n.folder()))
		return tree, m, err
	}, leave)
	if err != nil {
		return nil, err
	}
	if len(d.Files) == 0 && !s.hasState() {
		return nil, nil // nothing was ever put into a platform
	}
	plan, done, err := s.engine().Apply(ctx, d, change.Approval{})
	if err != nil {
		return nil, fromDeploy(err)
	}
	if err := s.reached("platforms"); err != nil {
		return nil, err
	}
	notes = plan.Warnings
	if done != nil {
		for _, name := range done.Changed {
			notes = append(notes, name+" was changed meanwhile; it was left as it is")
		}
	}
	return notes, nil
}

func (s *Service) hasState() bool { return change.Exists(filepath.Join(s.settings.State, "state")) }

func (s *Service) engine() *change.Engine { return change.NewEngine(s.settings.State, s.settings.Now) }

// fromDeploy words an error of deploy's engine as the contract does.
func fromDeploy(err error) error {
	var e *change.Error
	if !errors.As(err, &e) {
		return err
	}
	code := InternalError
	switch e.Code {
	case change.DesiredStateConflict, change.AdoptConfirmRequired:
		code = NameConflict
	case change.PermissionDenied:
		code = PermissionDenied
	case change.Locked:
		code = Busy
	case change.ConfigInvalid:
		code = IntegrityError
	case change.Unexpected:
		if _, has := e.Details["path"]; has {
			code = PermissionDenied
		}
	}
	out := newError(code, "%s", e.Message).Because(err)
	for key, value := range e.Details {
		if key == "path" || key == "owner" || key == "sample_paths" {
			out = out.With(key, value)
		}
	}
	return out
}

package packages

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/deploy"
)

// putFiles makes platforms have what some packages want by the text of a lock file. The packages' folders are at their places.
func (s *Service) putFiles(ctx context.Context, root *os.Root, text []byte, names []string) (notes []string, err error) {
	lock, err := parseLock(text)
	if err != nil {
		return nil, newError(InternalError, "the lock file of the change cannot be read").because(err)
	}
	w := Workspace{s.settings.Project}
	d, err := s.desired(lock, names, func(n Name) (deploy.Tree, *Manifest, error) {
		m, err := w.manifest(n)
		if err != nil {
			return nil, nil, err
		}
		tree, err := readTree(root, packageFolder(n.folder()))
		return tree, m, err
	})
	if err != nil {
		return nil, err
	}
	if len(d.Files) == 0 && !s.hasState() {
		return nil, nil // nothing was ever put into a platform
	}
	plan, done, err := s.engine().Apply(ctx, d, deploy.Approval{})
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

func (s *Service) hasState() bool { return exists(filepath.Join(s.settings.State, "state")) }

func (s *Service) engine() *deploy.Engine { return deploy.NewEngine(s.settings.State, s.settings.Now) }

// fromDeploy words an error of deploy's engine as the contract does.
func fromDeploy(err error) error {
	var e *deploy.Error
	if !errors.As(err, &e) {
		return err
	}
	code := InternalError
	switch e.Code {
	case deploy.DesiredStateConflict, deploy.AdoptConfirmRequired:
		code = NameConflict
	case deploy.PermissionDenied:
		code = PermissionDenied
	case deploy.Locked:
		code = Busy
	case deploy.ConfigInvalid:
		code = IntegrityError
	case deploy.Unexpected:
		if _, has := e.Details["path"]; has {
			code = PermissionDenied
		}
	}
	out := newError(code, "%s", e.Message).because(err)
	for key, value := range e.Details {
		if key == "path" || key == "owner" || key == "sample_paths" {
			out = out.with(key, value)
		}
	}
	return out
}

package packages

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
)

// Shared is a package that was published.
type Shared struct {
	Name     string
	Registry string
	Published
	Notes []string // what was left out
}

// publishPackage validates the package in the project, packs it and publishes it. AAM_MANIFEST_NOT_FOUND,
// AAM_MANIFEST_INVALID with everything that is wrong, AAM_REGISTRY_NOT_FOUND, AAM_REGISTRY_NOT_CONFIGURED,
// AAM_VERSION_EXISTS.
func (s *Service) publishPackage(ctx context.Context, registry, tag string, dryRun bool) (Shared, error) {
	v := validate(s.settings.Project, "")
	if v.Manifest == nil && !change.Exists(s.settings.Project+"/"+manifestName) {
		return Shared{}, newError(ManifestNotFound, "%s", v.Errors[0]).Suggest("make one with aam_create_package")
	}
	if !v.valid() {
		return Shared{}, newError(ManifestInvalid, "the package is invalid: %s", strings.Join(v.Errors, "; ")).With("errors",
			v.Errors).
			Suggest("correct it until aam_validate says that it is valid")
	}
	view, err := s.configured()
	if err != nil {
		return Shared{}, err
	}
	to, err := view.registry(registry)
	if err != nil {
		return Shared{}, err
	}
	archive, err := Pack(s.settings.Project)
	if err != nil {
		return Shared{}, err
	}
	packed, err := Unpack(archive)
	if err != nil {
		return Shared{}, err
	}
	publish := to.Publish
	if dryRun {
		publish = to.wouldPublish
	}
	p, err := publish(ctx, packed.Manifest, archive, tag, s.settings.Now())
	out := Shared{Name: packed.Manifest.Name, Registry: to.Name, Published: p}
	if change.Exists(filepath.Join(s.settings.Project, gitFolder)) {
		out.Notes = append(out.Notes, "git's own "+gitFolder+" in the folder was left out")
	}
	return out, err
}

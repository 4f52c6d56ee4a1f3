package packages

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Acts are the operations on packages for people only. All fields are required.
type Acts struct {
	Kernel  func() *operation.Kernel
	Service func() *Service
	Audit   func() operation.Audit
}

// RegistryInitRequest says where a registry is made.
type RegistryInitRequest struct {
	Folder     string `json:"folder" path:"folder" required:"true" minLength:"1" maxLength:"4096" doc:"folder that is not there, or empty"`
	Name       string `json:"name,omitempty" maxLength:"64" doc:"name of the registry; the folder's if left out"`
	SetDefault bool   `json:"set_default,omitempty" doc:"packages are published there if nobody says otherwise"`
}

// MadeRegistry is a registry that was made.
type MadeRegistry struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Default bool   `json:"is_default"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// Operations make a registry.
func (a Acts) Operations() []operation.Operation {
	return []operation.Operation{operation.Define(a.Kernel, "", operation.Operation{
		Name: "init_registry", Action: "packages.registry_init",
		Summary: "Make an empty registry, and add it to your configuration", Effect: operation.Write,
		Command: "packages registry init", Needs: operation.Needs{For: operation.Person, Scope: access.Operate,
			Dry: operation.DryTried},
		Shown: operation.Shown{
			Fresh: true,
			Help: "init makes a folder with an empty registry, and adds it to your configuration (~/.aam/config.yaml). A " +
				"registry that is there\n" +
				"already is added with `claudeops packages registry add NAME FOLDER`.",
			Example: "  claudeops packages registry init ~/registry --name team",
			Said: func(out any, _ bool) string {
				made, verb := out.(MadeRegistry), "Made"
				if made.DryRun {
					verb = "This is a dry run. It would make"
				}
				text := verb + " the registry " + made.Name + " at " + made.URL
				if made.Default {
					return text + ", the default one."
				}
				return text + "."
			},
		},
	}, operation.Way[RegistryInitRequest]{}, a.init)}
}

func (a Acts) init(ctx context.Context, call operation.Call, in RegistryInitRequest) (MadeRegistry, error) {
	out, err := a.Service().initRegistry(in.Folder, in.Name, in.SetDefault, call.DryRun)
	if err != nil {
		return MadeRegistry{}, faultOf(err)
	}
	if out.DryRun {
		return out, nil
	}
	return out, a.Audit().Record(context.WithoutCancel(ctx), call.Done("registry "+out.Name+" at "+out.URL), nil)
}

// initRegistry makes a folder with an empty registry and adds it to the user's configuration. AAM_INVALID_ARGUMENT for
// a name that is taken, and for a folder with something in it.
func (s *Service) initRegistry(folder, name string, makeDefault, dryRun bool) (MadeRegistry, error) {
	dir, why := s.settings.folderOf(folder)
	if why != "" {
		return MadeRegistry{}, newError(InvalidArgument, "%s: %s", folder, why)
	}
	if name == "" {
		name = filepath.Base(dir)
	}
	if !validRegistryName(name) {
		return MadeRegistry{}, newError(InvalidArgument, "%q is no name of a registry",
			name).Suggest("give one of letters, digits, hyphens and dots with --name")
	}
	known, err := s.Registries()
	if err != nil {
		return MadeRegistry{}, err
	}
	if at := slices.IndexFunc(known, func(r RegistryState) bool { return r.Name == name }); at >= 0 {
		return MadeRegistry{}, newError(InvalidArgument, "there is a registry %q already, at %s", name,
			known[at].URL).Suggest("choose another name with --name")
	}
	if err := s.makeRegistry(dir, name, dryRun); err != nil {
		return MadeRegistry{}, err
	}
	out := MadeRegistry{Name: name, URL: dir, Default: makeDefault || len(known) == 0, DryRun: dryRun}
	if dryRun {
		return out, nil
	}
	_, err = s.addRegistry(name, dir, makeDefault, false, false)
	return out, err
}

// makeRegistry makes the files of an empty registry. In a dry run it looks alone.
func (s *Service) makeRegistry(dir, name string, dryRun bool) error {
	unwritten := func(err error) error {
		return newError(PermissionDenied, "%s cannot be made: %s", dir,
			reason(err)).Because(err).Suggest("name another folder")
	}
	there, err := files.OpenDir(dir)
	if err == nil {
		entries, _, listErr := there.Entries(".", 1)
		if err := errors.Join(listErr, there.Close()); err != nil {
			return unwritten(err)
		}
		if len(entries) > 0 {
			return newError(InvalidArgument, "%s is not empty", dir).
				Suggest("name a folder that is not there; a registry that is there is added with: claudeops packages registry " +
					"add NAME FOLDER")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return unwritten(err)
	}
	if dryRun {
		return nil
	}
	if err := files.MkdirAll(dir, 0o755); err != nil {
		return unwritten(err)
	}
	root, err := files.OpenWriting(dir)
	if err != nil {
		return unwritten(err)
	}
	defer func() { _ = root.Close() }()
	p := publishing{Registry: Registry{Name: name, Dir: dir}, root: root}
	if err := p.writeYAML("index.yaml", Index{Packages: []IndexEntry{}}); err != nil {
		return err
	}
	return p.writeYAML("registry.yaml", registryFile{Name: name, Type: "local", APIVersion: 1,
		CreatedAt: s.settings.Now().UTC().Format(time.RFC3339)})
}

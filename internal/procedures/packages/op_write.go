package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
)

// InstallRequest says what to install.
type InstallRequest struct {
	Packages []string `json:"packages" positional:"true" required:"true" minItems:"1" maxItems:"1000" doc:"Names, each with @version, @constraint or @tag if wanted, such as my-skill or @scope/pkg@^1.2.0"`
	Platform *string  `json:"platform,omitempty" maxLength:"64" doc:"Put into this platform alone: cursor, claude, copilot, codex or agents; unset means those of the configuration"`
	Force    bool     `json:"force,omitempty" default:"false" doc:"Install again what is installed"`
	NoDeploy bool     `json:"no_deploy,omitempty" default:"false" doc:"Install without putting anything into a platform"`
}

// FailedPackage is a package that could not be had.
type FailedPackage struct {
	Package string         `json:"package" doc:"As it was asked for"`
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint"`
	Details map[string]any `json:"details"`
}

// InstallAnswer is the result of an installation.
type InstallAnswer struct {
	Installed            []InstalledInfo `json:"installed" doc:"With what the packages depend on"`
	AlreadyInstalled     []string        `json:"already_installed"`
	Failed               []FailedPackage `json:"failed"`
	DependenciesResolved int             `json:"dependencies_resolved" doc:"Packages that were installed because others need them"`
	DryRun               bool            `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes                []string        `json:"notes,omitempty"`
}

// Incomplete implements operation.Partial.
func (a InstallAnswer) Incomplete() bool { return len(a.Failed) > 0 }

func (s toolDeps) install() operation.Operation {
	o := readOperation("install", "install", "Install packages", "Install packages with what they depend on",
		"Install packages from the configured registries into the project's workspace .aam, with what they depend on, and "+
			"put their skills, agents, prompts and "+
			"instructions where the platforms read them. Files of others are never replaced. A package that cannot be had is "+
			"in failed; the others are "+
			"installed together or not at all. Versions that do not go together are an error that names each constraint.")
	o.Tool.Repeatable = true
	return defineWrite(s, o, func(InstallRequest) []string { return s.project() },
		func(ctx context.Context, call operation.Call, in InstallRequest) (InstallAnswer, error) {
			order := Order{Packages: in.Packages, Force: in.Force, NoDeploy: in.NoDeploy, DryRun: call.DryRun,
				Person: isPerson(call)}
			if in.Platform != nil {
				order.Platform = *in.Platform
			}
			done, err := s.service().Install(ctx, order)
			if err != nil {
				return InstallAnswer{}, err
			}
			return installAnswer(done, call.DryRun), nil
		})
}

func installAnswer(done Done, dryRun bool) InstallAnswer {
	out := InstallAnswer{
		Installed: []InstalledInfo{}, AlreadyInstalled: append([]string{}, done.Already...), Failed: []FailedPackage{},
		DryRun: dryRun, Notes: done.Notes,
	}
	for _, p := range done.Installed {
		out.Installed = append(out.Installed, infoOf(p))
		if p.ForOthers {
			out.DependenciesResolved++
		}
	}
	for _, f := range done.Failed {
		one := FailedPackage{f.Spec, f.Err.Code, f.Err.Message, strings.Join(f.Err.Suggestions, "; "), map[string]any{}}
		for key, value := range f.Err.Details {
			one.Details[key] = value
		}
		out.Failed = append(out.Failed, one)
	}
	return out
}

// UninstallRequest names a package.
type UninstallRequest struct {
	PackageName string `json:"package_name" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Name of the installed package"`
}

// UninstallAnswer is the result of an uninstallation.
type UninstallAnswer struct {
	PackageName       string   `json:"package_name"`
	Version           string   `json:"version"`
	FilesRemoved      int      `json:"files_removed"`
	DependentsWarning []string `json:"dependents_warning" doc:"Installed packages that need it, directly or by way of others"`
	DryRun            bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes             []string `json:"notes,omitempty" doc:"What was left as it is"`
}

func (s toolDeps) uninstall() operation.Operation {
	o := readOperation("uninstall", "uninstall", "Uninstall a package", "Remove a package and what it has put into platforms",
		"Remove a package from the project, with what it has put into every platform, and nothing else. What somebody has "+
			"changed since stays and is named in "+
			"notes. dependents_warning names the installed packages that need it.")
	o.Tool.Destructive = true
	return defineWrite(s, o, func(UninstallRequest) []string { return s.project() },
		func(ctx context.Context, call operation.Call, in UninstallRequest) (UninstallAnswer, error) {
			r, err := s.service().Uninstall(ctx, in.PackageName, call.DryRun)
			if err != nil {
				return UninstallAnswer{}, err
			}
			return UninstallAnswer{r.Name, r.Version, r.Files, append([]string{}, r.Dependents...), call.DryRun, r.Notes}, nil
		})
}

// PublishRequest says where to publish.
type PublishRequest struct {
	Registry *string `json:"registry,omitempty" maxLength:"64" doc:"Unset means the default one"`
	Tag      string  `json:"tag,omitempty" default:"latest" maxLength:"64" doc:"The tag that points to this version from now on"`
}

// PublishAnswer describes what was published.
type PublishAnswer struct {
	PackageName string   `json:"package_name"`
	Version     string   `json:"version"`
	Registry    string   `json:"registry"`
	ArchiveSize int64    `json:"archive_size" doc:"Bytes"`
	Checksum    string   `json:"checksum"`
	DryRun      bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes       []string `json:"notes,omitempty" doc:"What was left out"`
}

func (s toolDeps) publish() operation.Operation {
	o := readOperation("publish", "publish", "Publish a package", "Publish the package in the project to a registry",
		"Check the package in the project's folder, pack it and publish it to a registry. A version is published once; "+
			"raise the version in aam.yaml to publish again.")
	return defineWrite(s, o, func(PublishRequest) []string { return s.project() },
		func(ctx context.Context, call operation.Call, in PublishRequest) (PublishAnswer, error) {
			registry := ""
			if in.Registry != nil {
				registry = *in.Registry
			}
			p, err := s.service().publishPackage(ctx, registry, orText(in.Tag, "latest"), call.DryRun)
			if err != nil {
				return PublishAnswer{}, err
			}
			return PublishAnswer{p.Name, p.Version, p.Registry, p.Size, p.Checksum, call.DryRun, p.Notes}, nil
		})
}

// CreateRequest says how to make a package.
type CreateRequest struct {
	Path          string   `json:"path,omitempty" positional:"true" default:"." maxLength:"4096" doc:"Folder to look through"`
	Name          *string  `json:"name,omitempty" maxLength:"256" doc:"Unset means the folder's"`
	Version       *string  `json:"version,omitempty" maxLength:"64" doc:"Unset means 0.1.0"`
	Description   *string  `json:"description,omitempty" maxLength:"256" doc:"Unset means what the artifacts say"`
	ArtifactTypes []string `json:"artifact_types,omitempty" nullable:"true" maxItems:"4" doc:"Only these: skill, agent, prompt, instruction"`
	IncludeAll    bool     `json:"include_all,omitempty" default:"false" doc:"Has no effect: everything that is found is included"`
}

// CreateAnswer is the manifest that was made.
type CreateAnswer struct {
	ManifestPath      string         `json:"manifest_path"`
	PackageName       string         `json:"package_name"`
	Version           string         `json:"version"`
	ArtifactsIncluded map[string]int `json:"artifacts_included" doc:"How many of each type"`
	TotalArtifacts    int            `json:"total_artifacts"`
	DryRun            bool           `json:"dry_run,omitempty" doc:"Nothing was written"`
}

func (s toolDeps) createPackage() operation.Operation {
	o := readOperation("create_package", "create", "Make a package", "Write the manifest of a package from what is in a folder",
		"Look through a folder for skills, agents, prompts and instructions, and write an aam.yaml that lists them. What "+
			"installed packages have put there is left out. An "+
			"aam.yaml that is there is never replaced. Look at it, then publish it with aam_publish.")
	return defineWrite(s, o, func(CreateRequest) []string { return s.project() },
		func(ctx context.Context, call operation.Call, in CreateRequest) (CreateAnswer, error) {
			service := s.service()
			dir, within, err := service.resolveFolder(call, orText(in.Path, "."))
			if err != nil {
				return CreateAnswer{}, err
			}
			recipe := Recipe{Dir: dir, Within: within, Types: in.ArtifactTypes, DryRun: call.DryRun}
			for to, from := range map[*string]*string{&recipe.Name: in.Name, &recipe.Version: in.Version,
				&recipe.Description: in.Description} {
				if from != nil {
					*to = *from
				}
			}
			if err := checkTypes(in.ArtifactTypes); err != nil {
				return CreateAnswer{}, err
			}
			file, m, err := service.Create(ctx, recipe)
			if err != nil {
				return CreateAnswer{}, err
			}
			total, included := counts(m.Counts())
			return CreateAnswer{file, m.Name, m.Version, included, total, call.DryRun}, nil
		})
}

func checkTypes(types []string) error {
	known := []string{}
	for _, t := range artifactTypes() {
		known = append(known, t.singular())
	}
	for _, t := range types {
		if !slices.Contains(known, t) {
			return newError(InvalidArgument, "there is no type of artifacts %q; there are skill, agent, prompt, instruction",
				t).With("valid_types", known)
		}
	}
	return nil
}

// OutdatedPackage is an installed package of which there is something newer.
type OutdatedPackage struct {
	Name      string `json:"name"`
	Installed string `json:"installed"`
	Wanted    string `json:"wanted" doc:"What an upgrade of all packages comes to"`
	Newest    string `json:"newest" doc:"What its registry has"`
	Registry  string `json:"registry"`
	ForOthers bool   `json:"for_others" doc:"It came with another package"`
}

// OutdatedAnswer lists the packages that are not the newest, by name.
type OutdatedAnswer struct {
	Result []OutdatedPackage `json:"result"`
	Notes  []string          `json:"notes,omitempty"`
}

func (s toolDeps) outdated() operation.Operation {
	return defineRead(s, beside("outdated", "List installed packages that have newer versions",
		"List installed packages whose registry has a newer version. wanted is what packages upgrade comes to: it "+
			"is older than newest where another\n"+
			"package holds it back."),
		func(ctx context.Context, _ operation.Call, _ NoArguments) (OutdatedAnswer, error) {
			list, notes, err := s.service().Outdated(ctx)
			out := OutdatedAnswer{Result: []OutdatedPackage{}, Notes: notes}
			for _, p := range list {
				out.Result = append(out.Result, OutdatedPackage(p))
			}
			return out, err
		})
}

// UpgradeRequest names installed packages.
type UpgradeRequest struct {
	Packages []string `json:"packages,omitempty" positional:"true" maxItems:"1000" doc:"Names of installed packages; without any, all of them"`
}

// UpgradedPackage is a package that was taken to another version.
type UpgradedPackage struct {
	Name   string `json:"name"`
	From   string `json:"from" doc:"Empty if it is new, since another package needs it"`
	To     string `json:"to"`
	Source string `json:"source" doc:"The registry"`
}

// UpgradeAnswer is the result of an upgrade.
type UpgradeAnswer struct {
	Upgraded []UpgradedPackage `json:"upgraded"`
	Failed   []FailedPackage   `json:"failed"`
	DryRun   bool              `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes    []string          `json:"notes,omitempty"`
}

// Incomplete implements operation.Partial.
func (a UpgradeAnswer) Incomplete() bool { return len(a.Failed) > 0 }

func (s toolDeps) upgrade() operation.Operation {
	return defineWrite(s, beside("upgrade", "Take installed packages to their newest versions",
		"Take installed packages to the newest versions that go together, with what they depend on. Named ones alone take "+
			"nothing else along that they do\n"+
			"not need. No package gets an older version. All are upgraded together, or none is."),
		func(UpgradeRequest) []string { return s.project() },
		func(ctx context.Context, call operation.Call, in UpgradeRequest) (UpgradeAnswer, error) {
			service := s.service()
			before, err := service.Installed()
			if err != nil {
				return UpgradeAnswer{}, err
			}
			done, err := service.Install(ctx, Order{Packages: in.Packages, Upgrade: true, DryRun: call.DryRun,
				Person: isPerson(call)})
			if err != nil {
				return UpgradeAnswer{}, err
			}
			out := UpgradeAnswer{Upgraded: []UpgradedPackage{}, Failed: installAnswer(done, call.DryRun).Failed,
				DryRun: call.DryRun, Notes: done.Notes}
			for _, p := range done.Installed {
				one := UpgradedPackage{Name: p.Name, To: p.Version, Source: p.Source}
				if at := slices.IndexFunc(before, func(b InstalledPackage) bool { return b.Name == p.Name }); at >= 0 {
					one.From = before[at].Version
				}
				if one.From != one.To {
					out.Upgraded = append(out.Upgraded, one)
				}
			}
			if left := service.unneeded(); len(left) > 0 && !call.DryRun {
				out.Notes = append(out.Notes, "nothing needs these any more: "+strings.Join(left, ", ")+
					"; claudeops packages autoremove removes them")
			}
			return out, nil
		})
}

// unneeded returns the installed packages that nothing needs any more, as far as the lock file can be read.
func (s *Service) unneeded() []string {
	lock, err := (workspace{s.settings.Project}).Lock()
	if err != nil {
		return nil
	}
	return lock.unneeded()
}

// RemovedPackage is a package that was removed.
type RemovedPackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	FilesRemoved int    `json:"files_removed"`
}

// AutoremoveAnswer lists what was removed, by name.
type AutoremoveAnswer struct {
	Removed []RemovedPackage `json:"removed"`
	DryRun  bool             `json:"dry_run,omitempty" doc:"Nothing was written"`
	Notes   []string         `json:"notes,omitempty" doc:"What was left as it is"`
}

func (s toolDeps) autoremove() operation.Operation {
	return defineWrite(s, beside("autoremove", "Remove packages that came with others, and that nothing needs any more",
		"Remove packages that came with others, and that no package needs any more which somebody asked for. What somebody "+
			"has changed stays, as with\n"+
			"packages uninstall. --dry-run says what would go."),
		func(NoArguments) []string { return s.project() },
		func(ctx context.Context, call operation.Call, _ NoArguments) (AutoremoveAnswer, error) {
			gone, notes, err := s.service().Autoremove(ctx, call.DryRun)
			out := AutoremoveAnswer{Removed: []RemovedPackage{}, DryRun: call.DryRun, Notes: notes}
			for _, r := range gone {
				out.Removed = append(out.Removed, RemovedPackage{r.Name, r.Version, r.Files})
			}
			return out, err
		})
}

package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/operation"
)

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

func (s set) outdated() operation.Operation {
	return reading(s, beside("outdated", "List installed packages of which there are newer versions",
		"List installed packages of which their registry has a newer version. wanted is what packages upgrade comes to: it "+
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

func (s set) upgrade() operation.Operation {
	return writing(s, beside("upgrade", "Take installed packages to their newest versions",
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

func (s set) autoremove() operation.Operation {
	return writing(s, beside("autoremove", "Remove packages that came with others, and that nothing needs any more",
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

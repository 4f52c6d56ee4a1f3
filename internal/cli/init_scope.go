package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/places"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/system/files"
)

// policyVariable names the file with the rules.
const policyVariable = "CLAUDEOPS_POLICY"

// noScope is the answer that leaves the default rules.
const noScope = "none"

// chooseScope looks where the repository has procedures, once for each repository, and asks which of the folders agents
// may change. What cannot be read is left to the trial, which says why.
func (i *interview) chooseScope(ctx context.Context, s *initSettings) error {
	if s.looked == s.repo {
		return nil
	}
	s.looked, s.scope = s.repo, nil
	if s.values[policyVariable] != "" && !s.writesPolicy {
		if i.o.scope != "" {
			return app.Usage(fmt.Errorf("--scope writes a policy file, and %s names one already", policyVariable))
		}
		return nil
	}
	found, complete, err := i.lookForPlaces(ctx, *s)
	if err != nil {
		return nil //nolint:nilerr // the trial meets the same and says what to do
	}
	fmt.Fprintf(i.a.streams.Err, "\n%s has procedures in:\n%s", s.repo, harmless(places.Describe(found, complete)))
	named, err := i.scopeNamed(ctx, found)
	if err != nil || named == noScope {
		return err
	}
	if s.scope, err = places.Choose(found, named); err != nil {
		return app.Usage(fmt.Errorf("--scope: %w", err))
	}
	if s.writesPolicy = len(s.scope) > 0; s.writesPolicy {
		return i.place.claimPolicy(s, i.o.replace)
	}
	return nil
}

func (i *interview) lookForPlaces(ctx context.Context, s initSettings) (found []places.Place, complete bool,
	err error) {
	folder, err := files.MakeTemporary("", "claudeops-init-")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	looks := s.commandLine(i.a, true, folder.Path)
	found, complete, err = findPlaces(ctx, looks, s.repo)
	return found, complete, errors.Join(err, looks.program().Close())
}

// scopeNamed returns what --scope takes: the flag, or what the person chooses. Nobody is asked where the default rules
// open all that was found, and without a terminal nothing is chosen.
func (i *interview) scopeNamed(ctx context.Context, found []places.Place) (string, error) {
	known := []string{}
	for at, p := range found {
		if p.Known {
			known = append(known, strconv.Itoa(at+1))
		}
	}
	switch {
	case i.o.scope != "":
		return i.o.scope, nil
	case !slices.ContainsFunc(found, func(p places.Place) bool { return !openByDefault(p) }):
		return noScope, nil
	case !i.ask.canAsk():
		fmt.Fprint(i.a.streams.Err, "The default rules hold; --scope auto or --scope FOLDER,... opens what was found.\n")
		return noScope, nil
	}
	usual := noScope
	if len(known) > 0 {
		usual = strings.Join(known, ",")
	}
	var menu strings.Builder
	for at, p := range found {
		fmt.Fprintf(&menu, "  %d  %s\n", at+1, p.Folder)
	}
	return i.ask.promptFor(ctx, "", question{
		flag: "--scope", intro: "Which of them may agents change?\n" + harmless(menu.String()),
		text: "Numbers with commas between, or " + noScope + " for the default rules", usual: usual,
		check: func(answer string) (string, error) { return foldersOf(found, answer) },
	})
}

// openByDefault reports whether the default rules open a place as a whole.
func openByDefault(p places.Place) bool {
	return p.Kind == "" && !slices.ContainsFunc(p.Patterns, func(pattern string) bool {
		return !slices.Contains(gitprovider.DefaultAllow(), pattern)
	})
}

// foldersOf returns the folders that an answer of numbers means.
func foldersOf(found []places.Place, answer string) (string, error) {
	if strings.ToLower(answer) == noScope {
		return noScope, nil
	}
	var out []string
	for part := range strings.SplitSeq(answer, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > len(found) {
			return "", fmt.Errorf("%.20q is not one of the numbers 1 to %d", part, len(found))
		}
		out = append(out, found[n-1].Folder)
	}
	return strings.Join(out, ","), nil
}

// policyFile is the file that init writes if a person chose folders.
func (p initPaths) policyFile() string { return filepath.Join(p.settingsFolder(), "policy.yaml") }

// claimPolicy makes the settings name the policy file that will be written.
func (p initPaths) claimPolicy(s *initSettings, replace bool) error {
	if _, err := files.Lstat(p.policyFile()); err == nil && !replace {
		return app.Usage(fmt.Errorf("%s is there already; name it in %s, or replace it with --replace", p.policyFile(),
			policyVariable))
	}
	s.values[policyVariable] = p.policyFile()
	return nil
}

// policyText returns the policy that opens the chosen folders.
func (s initSettings) policyText() []byte {
	tier, _ := gitprovider.ParseTier(s.values["CLAUDEOPS_TIER"])
	return []byte(places.Policy(s.scope, tier))
}

// withPolicyIn returns the settings for a trial whose policy file is in a folder of its own, which it writes.
func (s initSettings) withPolicyIn(folder string) (initSettings, error) {
	if !s.writesPolicy {
		return s, nil
	}
	name := filepath.Join(folder, "policy.yaml")
	values := map[string]string{}
	for key, value := range s.values {
		values[key] = value
	}
	values[policyVariable] = name
	s.values = values
	return s, files.Replace(name, s.policyText(), 0o600)
}

// changeOfScope returns a request that adds a line to a file of the folders that were chosen; nil if none of them has a
// file that the tier may change.
func (s initSettings) changeOfScope(ctx context.Context, caller *commandLine) ([]byte, error) {
	owner, name, err := splitRepo(s.repo)
	if err != nil {
		return nil, err
	}
	for _, p := range s.scope {
		raw, err := json.Marshal(prflow.ReadFileRequest{RepoOwner: owner, RepoName: name, Path: p.Example})
		if err != nil {
			return nil, err
		}
		read, err := askFor[prflow.FileText](ctx, caller, prflow.ActionReadFile, raw)
		if code := fault.CodeOf(err); code == fault.TierDenied || code == fault.ContentDenied || err == nil &&
			len(read.Lacks) > 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		content := strings.TrimRight(read.Text, "\n") + "\n\nAgents may propose changes to this file with Claude Ops.\n"
		return json.Marshal(prflow.CreateRequest{
			RepoOwner: owner, RepoName: name, Preview: prflow.PreviewFull,
			Title: fmt.Sprintf("Say in %.40s that agents may change it", path.Base(p.Example)),
			Body:  "A first change. People and agents see that this file is kept up to date by pull requests.",
			Files: []prflow.FileRequest{{Path: p.Example, Action: string(gitprovider.ActionUpdate), Content: &content,
				BaseSHA: read.BaseSHA}},
		})
	}
	return nil, nil
}

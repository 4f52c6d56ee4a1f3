package deploy

import (
	"context"
	"crypto/sha1" //nolint:gosec // git names blobs so
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Draft holds changes that somebody made in targets, as a change of the repository that the files come from.
type Draft struct {
	Home    Home
	Skills  bool // all files are those of skills
	Files   []DraftFile
	Modules []string // ids, sorted
}

// Home is a repository as a proposal names it.
type Home struct {
	Owner, Name string
	Provider    string // "" if not given
	CloneURL    string // "" if it says nothing of the provider
	Base        string // "" for the repository's default branch
}

// DraftFile is a file of a Draft.
type DraftFile struct {
	Path    string
	Action  gitprovider.Action
	Content string
	BaseSHA string // git's name of what was deployed; "" for a new file
	From    string // the target and its file, for people
	Module  string
}

// drafting collects the files of a Draft.
type drafting struct {
	service *Service
	traced  traced
	state   fileset.State
	read    func(name string) ([]byte, error)
	byHome  map[Home][]DraftFile
}

// draftOf makes a Draft of drift: of the files that are named, or else of all that were modified. A missing file
// becomes a deletion, and an extra one in the folder of a skill a new file, only if they are named.
//
// E_NOTHING_TO_PROPOSE if nothing has drifted, or nothing of that can be proposed; it says why, by file.
func (s *Service) draftOf(ctx context.Context, r Request, names []string) (Draft, error) {
	t, err := s.traced(ctx, r)
	if err != nil {
		return Draft{}, err
	}
	_, drift, _, err := s.Status(ctx, r)
	if err != nil {
		return Draft{}, err
	}
	if drift, err = s.chosen(drift, names); err != nil {
		return Draft{}, err
	}
	p, err := s.engine.Plan(ctx, t.Desired)
	if err != nil {
		return Draft{}, err
	}
	d := drafting{service: s, traced: t, state: s.engine.State(), read: p.Read, byHome: map[Home][]DraftFile{}}
	for _, item := range drift {
		if err := d.addDrift(ctx, item); err != nil {
			return Draft{}, err
		}
	}
	return d.draft()
}

func nothingToPropose(why, next, format string, args ...any) *Error {
	return fileset.NewError(NothingToPropose, why, []string{next, "retry_command"}, format, args...)
}

// chosen returns the drift that is to be proposed.
func (s *Service) chosen(drift []fileset.Drift, names []string) (out []fileset.Drift, err error) {
	for _, item := range drift {
		if len(names) == 0 && item.Kind == fileset.Modified {
			out = append(out, item)
		}
	}
	for _, name := range names {
		full, found := s.absolute(name), false
		for _, item := range drift {
			if item.Path == full {
				out, found = append(out, item), true
			}
		}
		if !found {
			return nil, nothingToPropose("no_drift", "look_at_status",
				"%s is as it was deployed, or was never deployed; claudeops deploy status lists what is not", full).With("path",
				full)
		}
	}
	if len(out) == 0 {
		return nil, nothingToPropose("no_drift", "look_at_status",
			"no file was modified since it was deployed; name those to propose that are missing, or extra, if there are any: "+
				"claudeops deploy status lists them")
	}
	return out, nil
}

// addDrift adds the change of a file.
func (d *drafting) addDrift(ctx context.Context, item fileset.Drift) error {
	if item.Kind == fileset.Extra {
		return d.extra(ctx, item)
	}
	of, wanted := d.traced.files[fileset.FileKey{Target: item.Target, Path: item.Path}]
	if !wanted {
		return nothingToPropose("not_wanted", "deploy_first", "no module gives %s any more; the next deployment removes it",
			item.Path).With("path", item.Path)
	}
	before, ok := of.apart(string(deployed(d.state, item)))
	if !ok {
		return nothingToPropose("modules_changed", "deploy_first",
			"%s is made of other modules than those that were deployed; deploy, which keeps what is there in a snapshot, and "+
				"change it again", item.Path).With("path", item.Path)
	}
	if item.Kind == fileset.Missing {
		if len(of.parts) > 1 {
			return nothingToPropose("several_modules", "change_modules",
				"%s is made of %d modules, so it is not clear which one should go; remove it from %s", item.Path, len(of.parts),
				configName).With("path", item.Path)
		}
		return d.edit(ctx, item, of.parts[0], before[0], nil)
	}
	text, err := d.driftedText(item)
	if err != nil {
		return err
	}
	after, ok := of.apart(text)
	if !ok {
		return nothingToPropose("outside_of_modules", "change_modules",
			"%s was changed outside of the parts that modules have in it, or in the lines that mark them; put those lines back",
			item.Path).With("path", item.Path)
	}
	for i, p := range of.parts {
		if before[i] != after[i] {
			if err := d.edit(ctx, item, p, before[i], &after[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// driftedText returns the present text of a drifted file.
func (d *drafting) driftedText(item fileset.Drift) (string, error) {
	content, err := d.read(item.Path)
	if err != nil {
		return "", ioError(item.Path, err)
	}
	if item.Actual == nil || !utf8.Valid(content) {
		return "", nothingToPropose("no_text", "look_at_file", "%s is not a regular file with a text", item.Path).With("path",
			item.Path)
	}
	return string(content), nil
}

// edit proposes a new text for a module's file; nil removes it. before is the deployed text of that part.
func (d *drafting) edit(ctx context.Context, item fileset.Drift, p filePart, before string, after *string) error {
	file := DraftFile{Action: gitprovider.ActionDelete, From: d.portablePath(item), Module: p.module.ID}
	tree := fileset.Tree{}
	for rel, f := range p.module.tree {
		tree[rel] = f
	}
	delete(tree, p.file)
	if now, err := p.module.tree[p.file].Content.Bytes(); err == nil && p.line && withNewline(string(now)) == before &&
		string(now) != before {
		before = string(now)
		if after != nil { // the newline was added, as it will be again
			*after = strings.TrimSuffix(*after, "\n")
		}
	}
	if after != nil {
		file.Action, file.Content = gitprovider.ActionUpdate, *after
		tree[p.file] = fileset.TreeFile{Content: fileset.Bytes([]byte(*after))}
	}
	file.BaseSHA = blobName(before)
	if err := checkModule(p.module.Module, tree); err != nil {
		return nothingToPropose("module_invalid", "correct_file", "%s cannot be proposed as it is: %s", item.Path,
			errorOf(err).Message).With("path", item.Path).With("module_id", p.module.ID)
	}
	home, err := d.home(ctx, p, &file)
	if err != nil {
		return err
	}
	return d.addDraftFile(home, file)
}

// home finds where a part is kept: in the highest overlay that has it, or in the module's source.
func (d *drafting) home(ctx context.Context, p filePart, file *DraftFile) (Home, error) {
	for _, l := range slices.Backward(p.module.layers[1:]) {
		if patch := l.patchOf(p.file); patch != "" {
			return Home{}, nothingToPropose("patched", "change_patch",
				"%s of the module %s is patched by %s; change that patch, or make the overlay one of files", p.file, p.module.ID,
				patch).With("patch_file", patch)
		}
		if _, has := l.files[p.file]; has {
			file.Path = path.Join(l.dir, p.file)
			return d.service.configurationHome(ctx)
		}
	}
	return d.source(ctx, p, file)
}

func (d *drafting) source(ctx context.Context, p filePart, file *DraftFile) (Home, error) {
	kept := d.service.placeOf(d.traced.from, p.module, p.file)
	file.Path = kept.path
	if kept.address == "" {
		return d.service.configurationHome(ctx)
	}
	home, err := homeOf(kept.address)
	if ref := p.module.Source.Git.Ref; !isCommit(ref) {
		home.Base = ref
	}
	return home, err
}

// extra proposes a file that somebody has put into the folder of a skill.
func (d *drafting) extra(ctx context.Context, item fileset.Drift) error {
	for key, of := range d.traced.files {
		p := of.parts[0]
		if key.Target != item.Target || p.module.Type != Skill || p.file != skillFile {
			continue
		}
		rel, inside := under(strings.TrimSuffix(key.Path, skillFile), item.Path)
		if !inside {
			continue
		}
		text, err := d.driftedText(item)
		if err != nil {
			return err
		}
		p.file = rel
		file := DraftFile{Action: gitprovider.ActionCreate, Content: text, From: d.portablePath(item), Module: p.module.ID}
		home, err := d.source(ctx, p, &file)
		if err != nil {
			return err
		}
		return d.addDraftFile(home, file)
	}
	return nothingToPropose("no_module", "add_module",
		"%s lies in the folder of no skill; give it a module in %s, and propose that", item.Path, configName).With("path",
		item.Path)
}

// addDraftFile refuses two changes of one file that are not the same.
func (d *drafting) addDraftFile(home Home, file DraftFile) error {
	for i, other := range d.byHome[home] {
		switch {
		case other.Path != file.Path:
		case other.Action != file.Action || other.Content != file.Content:
			return nothingToPropose("two_changes", "name_one",
				"%s and %s have come to differ, and are both %s of %s/%s; name the one to propose", other.From, file.From,
				file.Path, home.Owner, home.Name)
		default:
			d.byHome[home][i].From += ", " + file.From
			return nil
		}
	}
	d.byHome[home] = append(d.byHome[home], file)
	return nil
}

// draft returns the collected changes. One proposal is about one repository.
func (d *drafting) draft() (out Draft, err error) {
	if len(d.byHome) > 1 {
		var names []string
		for home, files := range d.byHome {
			var from []string
			for _, f := range files {
				from = append(from, f.From)
			}
			names = append(names, fmt.Sprintf("%s/%s: %s", home.Owner, home.Name, strings.Join(from, ", ")))
		}
		slices.Sort(names)
		return out, nothingToPropose("several_repositories", "name_files",
			"the files come from several repositories, and a proposal is about one; name those of one: %s",
			strings.Join(names, "; "))
	}
	out.Skills = true
	types := map[string]ModuleType{}
	for _, of := range d.traced.files {
		for _, p := range of.parts {
			types[p.module.ID] = p.module.Type
		}
	}
	for home, files := range d.byHome {
		out.Home, out.Files = home, files
		for _, f := range files {
			out.Modules, out.Skills = append(out.Modules, f.Module), out.Skills && types[f.Module] == Skill
		}
	}
	slices.SortFunc(out.Files, func(a, b DraftFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(out.Modules)
	out.Modules = slices.Compact(out.Modules)
	return out, nil
}

// portablePath returns a file of a target without the names of this machine's folders.
func (d *drafting) portablePath(item fileset.Drift) string {
	name := path.Base(item.PathPosix)
	for prefix, folder := range map[string]string{"": d.service.setup.Places.Project, "~/": d.service.setup.Places.Home} {
		if rel, inside := under(folder, item.Path); inside {
			name = prefix + rel
			break
		}
	}
	return string(item.Target) + ": " + name
}

// blobName returns git's name of a text in a repository whose names have SHA-1.
func blobName(text string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)) //nolint:gosec // git names blobs so
	return hex.EncodeToString(sum[:])
}

// configurationHome returns the repository that the configuration comes from. E_CHECKOUT_NOT_READY if it is not known.
func (s *Service) configurationHome(ctx context.Context) (Home, error) {
	dir := s.setup.repo("")
	address, err := s.setup.Git.origin(ctx, dir)
	if err != nil {
		return Home{}, err
	}
	var home Home
	var problem error
	if address != "" {
		home, problem = homeOf(address)
		home.Base = s.setup.Git.follows(ctx, dir)
	}
	if len(s.repos) == 1 { // the operator's word
		provider, name, named := strings.Cut(s.repos[0], ":")
		if !named {
			provider, name = "", s.repos[0]
		}
		owner, repo, _ := strings.Cut(name, "/")
		if !strings.EqualFold(home.Owner+"/"+home.Name, name) {
			home.CloneURL = ""
		}
		home.Provider, home.Owner, home.Name, problem = provider, owner, repo, nil
	}
	if problem != nil || home.Name == "" {
		return Home{}, notReady("not_a_checkout", "clone_repository",
			"it is not known which repository %s comes from, so that nothing can be proposed to it; make it a clone of one, "+
				"or name it with CLAUDEOPS_DEPLOY_REPOS", dir).With("path", dir)
	}
	return home, nil
}

// homeOf returns the repository of an address: owner and name are its last two parts.
func homeOf(address string) (Home, error) {
	address = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(address), "/"), ".git")
	parts := strings.FieldsFunc(address, func(r rune) bool { return r == '/' || r == ':' || r == '\\' })
	if len(parts) < 2 {
		return Home{}, nothingToPropose("no_repository", "look_at_config",
			"the address %s does not end with the owner and the name of a repository", withoutUserinfo(address))
	}
	home := Home{Owner: parts[len(parts)-2], Name: parts[len(parts)-1]}
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && u.Scheme != "file" {
		if u.Scheme != "ssh" {
			u.User = nil
		}
		address = u.String()
	}
	if remote, err := gitprovider.ParseRemote(address); err == nil && remote.Host != gitprovider.HostLocal &&
		remote.Names(home.Owner, home.Name) {
		home.CloneURL = address
	}
	return home, nil
}

// follows returns the branch of its remote that the checkout in a folder follows; "" if it is on none.
func (g *Git) follows(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	said := func(args ...string) string {
		out, failure, err := g.runGit(ctx, dir, nil, args...)
		if err != nil || failure != "" {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	branch := said("symbolic-ref", "--quiet", "--short", "HEAD")
	if branch == "" {
		return ""
	}
	return strings.TrimPrefix(said("config", "--local", "--no-includes", "--get", "branch."+branch+".merge"),
		"refs/heads/")
}

package packages

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/change"
)

// registries returns the configured ones. Who names a registry decides which folder it may be: the user any; the
// project's file one of the user's, one in the project, which is the project's own data, and one that the operator's
// list of sources admits. What else the project's file names is not used, and not looked at. The default one is the
// first that is marked so and used, or the first.
func (s *Service) registries(c Config) []Registry {
	own := map[string]string{} // folders of the user's registries, by name
	for _, r := range registriesOf(c.own) {
		own[r.Name], _ = s.settings.folderOf(r.URL)
	}
	var out []Registry
	for _, r := range registriesOf(c.values["registries"].([]any)) {
		one := Registry{Name: r.Name, settings: r, cache: s.indexes}
		one.Dir, one.unusable = s.settings.folderOf(r.URL)
		switch {
		case c.sources["registries"] == SourceProject:
			s.settings.judge(&one, own)
		case one.unusable == "" && s.settings.isRelative(r.URL): // what lies there is the project's
			one.within = s.settings.Project
		}
		out = append(out, one)
	}
	marked := slices.IndexFunc(out, func(r Registry) bool { return r.settings.Default && r.unused == "" })
	if marked < 0 {
		marked = slices.IndexFunc(out, func(r Registry) bool { return r.unused == "" })
	}
	for i := range out {
		out[i].settings.Default = i == marked
	}
	return out
}

// judge decides whether a registry is used that the project's file names.
func (s Settings) judge(r *Registry, own map[string]string) {
	mine, has := own[r.Name]
	switch {
	case has && mine != r.Dir:
		r.unused = fmt.Sprintf("not used: only a file of the project names %s; %q is your own registry at %s", r.Dir, r.Name,
			mine)
	case r.unusable == "" && s.inProject(r.Dir):
		r.within = s.Project
	case slices.Contains(slices.Collect(maps.Values(own)), r.Dir):
	case !s.admitted(r.Dir):
		r.unused = sources.Refusal(r.Dir)
	}
}

// admitted reports whether the operator's list of sources has a folder, also after links. An address that is not a
// folder can be on it, too.
func (s Settings) admitted(dir string) bool {
	if s.Sources == nil {
		return false
	}
	source, ok := s.Sources().Find(dir)
	if !ok || !filepath.IsAbs(dir) {
		return ok
	}
	origin, err := url.Parse(source.Origin)
	return err == nil && change.Below(real(filepath.FromSlash(origin.Path)), real(dir))
}

// isRelative reports whether a registry's URL is a path that begins in the project.
func (s Settings) isRelative(text string) bool {
	return !strings.HasPrefix(text, "file:") && text != "~" && !strings.HasPrefix(text, "~/") &&
		!filepath.IsAbs(filepath.FromSlash(text))
}

// folderOf returns the folder of a registry's URL; why is set if there is none.
func (s Settings) folderOf(text string) (dir, why string) {
	switch {
	case strings.HasPrefix(text, "file:"):
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
			return text, "the URL is no file:///path"
		}
		text = u.Path
	case strings.Contains(text, "://"):
		return text, "only registries in folders are supported, given as a path or as file:///path"
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = s.Home + text[1:]
	}
	text = filepath.FromSlash(text)
	if !filepath.IsAbs(text) {
		text = filepath.Join(s.Project, text)
	}
	return filepath.Clean(text), ""
}

// inProject reports whether a folder lies in the project, links followed.
func (s Settings) inProject(dir string) bool {
	return s.Project != "" && change.Below(real(s.Project), real(dir))
}

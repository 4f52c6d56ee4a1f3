package deploy

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/change"
)

// Whose word counts: the configuration AGENTPACK_HOME/repo is the operator's own, and may name every source. Another
// one is a project's: a person at the terminal may choose it to be read, an agent only if the operator named it; and of
// the sources that it names only those are used that the operator has admitted (internal/settings/sources).

func notNamed(address, format string, args ...any) *Error {
	e := change.NewError(SourceNotAllowed, "source_not_allowed", []string{"ask_operator"}, format, args...).With("source",
		address)
	if origin, err := sources.OriginOf(address); err == nil {
		e = e.With("allow", "claudeops sources allow "+origin)
	}
	return e
}

// admitted returns the sources that the operator has admitted, as they are now.
func (s Setup) admitted() sources.List {
	if s.Sources == nil {
		return nil
	}
	return s.Sources()
}

// tokenAt returns the credential of the operator's list of sources for an address; "" for none.
func (s Setup) tokenAt(address string, token func(variable string) string) string {
	source, ok := s.admitted().Find(address)
	if !ok || source.TokenEnv == "" || token == nil {
		return ""
	}
	return token(source.TokenEnv)
}

// fromCaller returns the repository that a call may read: the operator's own, or one that the operator has admitted; a
// person at the terminal may name any. E_SOURCE_NOT_ALLOWED, which the audit records, for another one, whether it
// exists or not.
func (s *Service) fromCaller(call operation.Call, repo string) (string, error) {
	if repo == "" || call.Caller.Door == record.DoorCLI {
		return repo, nil
	}
	name, own := s.setup.repo(repo), s.setup.repo("")
	if real, err := change.RealPath(name); err == nil {
		name = real
	}
	if real, err := change.RealPath(own); name == own || err == nil && name == real {
		return "", nil
	}
	if _, _, listed := s.setup.admitted().Pick(trust.Caller[string]{Argument: filepath.ToSlash(name)}); listed {
		return name, nil
	}
	address := filepath.ToSlash(name)
	refused := notNamed(address,
		"the configuration %s is not used: the operator has not named it. A person who trusts it runs: claudeops sources allow %s", name, address)
	call.Note(operation.Note{Message: refused.Message})
	return "", refused
}

// choose says whether a source that a project's configuration names may be used: one that the operator has admitted, at
// its true place. The source that it returns is read with less: no server leads it on to another address, and it has no
// private one that the operator has not admitted.
func (s Setup) choose(m Module) (*GitSource, error) {
	list, address := s.admitted(), m.Source.Git.URL
	picked, source, ok := list.Pick(trust.Project[string]{Data: address})
	if local, is := localPath(address); ok && is {
		if real, err := change.RealPath(local); err == nil {
			_, ok = list.Find(filepath.ToSlash(real))
		}
	}
	if !ok {
		return nil, notNamed(address, "the module %s: %s", m.ID, sources.Refusal(address)).With("module_id", m.ID).With("url",
			address)
	}
	chosen := *m.Source.Git
	chosen.named, chosen.exact, chosen.public = picked, true, !source.Private
	return &chosen, nil
}

// localPath returns the path that an address of this machine's files means.
func localPath(address string) (name string, ok bool) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
		return filepath.FromSlash(u.Path), true
	}
	return address, filepath.IsAbs(address)
}

// fetches notes which addresses a call reads from outside of this machine's configuration.
type fetches struct {
	mu   sync.Mutex
	list []string
}

type fetchesKey struct{}

// noting has what is fetched with the context noted.
func noting(ctx context.Context) (context.Context, *fetches) {
	f := &fetches{}
	return context.WithValue(ctx, fetchesKey{}, f), f
}

// fetching notes that an address is asked.
func fetching(ctx context.Context, address string) {
	f, ok := ctx.Value(fetchesKey{}).(*fetches)
	if !ok {
		return
	}
	address = shown(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.list, address) {
		f.list = append(f.list, address)
	}
}

// shown returns an address as texts have it: without what one signs in with.
func shown(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
		u.User = nil
		address = u.String()
	}
	return change.Short(address)
}

// said returns the audit's text about it; "" if nothing was fetched.
func (f *fetches) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == 0 {
		return ""
	}
	slices.Sort(f.list)
	return "fetched from " + strings.Join(f.list[:min(len(f.list), maxNoted)], ", ")
}

// noteTo adds it to the row of a call.
func (f *fetches) noteTo(call operation.Call, n operation.Note) {
	if said := f.said(); said != "" {
		n.Message = strings.TrimPrefix(n.Message+"; "+said, "; ")
	}
	if n.Message != "" || len(n.Paths) > 0 {
		call.Note(n)
	}
}

// Fetched runs f, and returns with its error which addresses it asked, in words; "" if none.
func Fetched(ctx context.Context, f func(ctx context.Context) error) (said string, err error) {
	ctx, noted := noting(ctx)
	err = f(ctx)
	return noted.said(), err
}

package definitions

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Origin says what a definition was forked from.
type Origin struct {
	Name       string
	Version    string
	CreatedAt  string // as the file has it
	LastMerged string // as the file has it; "" if never, or not known
}

// Fork is a definition that was forked from another.
type Fork struct {
	*Found
	Origin Origin
	// Current is the highest version that upstream has, on this machine or in the first registry that has it; "" if
	// upstream was not found.
	Current string
	// From is the registry that has it; "" for a version of this machine.
	From string
}

// Updated reports whether upstream has a higher version than the one that was forked or merged last.
func (f Fork) Updated() bool {
	return f.Current != "" && compareVersions(f.Current, f.Origin.Version) > 0
}

// Breaking reports whether upstream's highest version has a higher major number.
func (f Fork) Breaking() bool {
	from, err1 := semver.NewVersion(f.Origin.Version)
	to, err2 := semver.NewVersion(f.Current)
	return err1 == nil && err2 == nil && to.Major() > from.Major()
}

// originOf reads where a definition comes from, in the three spellings of Forge: fork_of and fork in the definition,
// and metadata.json beside it. ok is false for a definition that is not a fork.
func originOf(f *Found) (Origin, bool) {
	tree := f.Definition.tree
	if v := tree.get("fork_of"); v != nil && v.get("name") != nil {
		return Origin{
			Name: v.get("name").string(), Version: v.get("version").string(),
			CreatedAt: v.get("forked_at").string(), LastMerged: v.get("merged_at").string(),
		}, true
	}
	if v := tree.get("fork"); v != nil && v.get("upstream") != nil {
		return Origin{
			Name: v.get("upstream").string(), Version: v.get("upstreamVersion").string(), CreatedAt: v.get("forkedAt").string(),
			LastMerged: v.get("mergedAt").string(),
		}, true
	}
	return f.file.readOrigin()
}

// readOrigin reads the fork's metadata.json; only a definition with a folder of its own has one.
func (f definitionFile) readOrigin() (Origin, bool) {
	stem := strings.TrimSuffix(path.Base(f.rel), path.Ext(f.rel))
	if stem != string(f.kind) {
		return Origin{}, false
	}
	root, err := f.place.open()
	if err != nil || root == nil {
		return Origin{}, false
	}
	defer func() { _ = root.Close() }()
	content, err := readBelow(root, path.Join(path.Dir(f.rel), "metadata.json"))
	var m struct {
		Fork struct {
			CreatedAt   string `json:"created_at"`
			MergedAt    string `json:"merged_at"`
			FromName    string `json:"from_name"`
			FromVersion string `json:"from_version"`
		} `json:"fork"`
	}
	if err != nil || json.Unmarshal(content, &m) != nil || m.Fork.FromName == "" {
		return Origin{}, false
	}
	return Origin{Name: m.Fork.FromName, Version: m.Fork.FromVersion, CreatedAt: m.Fork.CreatedAt,
		LastMerged: m.Fork.MergedAt}, true
}

// Forks lists the forks among the definitions of this machine, by name.
func (c *Catalog) Forks(ctx context.Context, kinds ...Kind) ([]Fork, error) {
	var out []Fork
	for _, kind := range kinds {
		for _, p := range c.places() {
			files, _, err := p.definitionFiles(kind, "")
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if fork, ok := c.forkIn(ctx, f); ok {
					out = append(out, fork)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Fork) int {
		return cmp.Or(strings.Compare(a.Definition.Name, b.Definition.Name),
			strings.Compare(string(a.Definition.Kind), string(b.Definition.Kind)))
	})
	return out, nil
}

func (c *Catalog) forkIn(ctx context.Context, f definitionFile) (Fork, bool) {
	definition, problems := c.load(f)
	if definition == nil {
		return Fork{}, false
	}
	found := &Found{Definition: definition, Source: f.place.source, Path: f.path(), Problems: problems, file: f}
	origin, ok := originOf(found)
	if !ok {
		return Fork{}, false
	}
	return c.forkOf(ctx, found, origin), true
}

// forkOf returns a fork with what its upstream has become.
func (c *Catalog) forkOf(ctx context.Context, found *Found, origin Origin) Fork {
	f := Fork{Found: found, Origin: origin}
	for _, v := range c.versions(ctx, found, origin) {
		if f.Current == "" || compareVersions(v.Version, f.Current) > 0 {
			f.Current, f.From = v.Version, v.Registry
		}
	}
	return f
}

// Fork returns the fork with this name, whatever its kind; an agent before a tool. VALIDATION_ERROR for a definition
// that is not a fork.
func (c *Catalog) Fork(ctx context.Context, name string) (Fork, error) {
	var plain *Found
	for _, kind := range Kinds() {
		found, err := c.resolve(ctx, kind, Reference{Name: name}, "")
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return Fork{}, err
		}
		if origin, ok := originOf(found); ok {
			return c.forkOf(ctx, found, origin), nil
		}
		plain = found
	}
	if plain != nil {
		return Fork{}, newError(ValidationError,
			"%s %q is not a fork: it has neither fork_of nor fork, and no metadata.json that names an upstream",
			plain.Definition.Kind, name).With("path", plain.Path)
	}
	return Fork{}, newError(AgentNotFound, "no agent and no tool is named %q", name).With("name", name)
}

// versions returns the versions of upstream that can be found, the fork itself aside.
func (c *Catalog) versions(ctx context.Context, fork *Found, origin Origin) []Newest {
	var out []Newest
	for _, p := range c.places() {
		files, _, err := p.definitionFiles(fork.Definition.Kind, origin.Name)
		if err != nil {
			continue
		}
		for _, f := range files {
			if f.path() == fork.Path {
				continue
			}
			version := f.version
			if version == "" {
				if d, _ := c.load(f); d != nil {
					version = d.Version
				}
			}
			out = append(out, Newest{Version: version})
		}
	}
	if c.opts.Registries != nil {
		asking, cancel := c.listTime(ctx)
		defer cancel()
		offers := c.opts.Registries.offers(asking, fork.Definition.Kind)
		for _, o := range offers.found {
			if o.item.Name == origin.Name && !preferred(offers.silent, o.plugin.registry) {
				out = append(out, Newest{o.item.Version, o.plugin.registry.Name})
			}
		}
	}
	return slices.DeleteFunc(out, func(v Newest) bool { return v.Version == "" })
}

// upstream returns the version of upstream that was forked.
func (c *Catalog) upstream(ctx context.Context, f Fork) (*Found, error) {
	kind, ref := f.Definition.Kind, Reference{Name: f.Origin.Name, Range: f.Origin.Version}
	for _, p := range c.places() {
		files, _, err := p.definitionFiles(kind, ref.Name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if file.path() == f.Path || file.version != "" && file.version != ref.Range {
				continue
			}
			if d, problems := c.load(file); d != nil && d.Version == ref.Range {
				return &Found{Definition: d, Source: p.source, Path: file.path(), Problems: problems, file: file}, nil
			}
		}
	}
	if c.opts.Registries != nil {
		exact := Reference{Name: ref.Name, Range: "=" + ref.Range}
		if found, _ := c.opts.Registries.component(ctx, c.validator, kind, exact); found != nil {
			return found, nil
		}
	}
	return nil, newError(notFoundCode(kind), "version %s of %s, which %q was forked from, was not found", ref.Range,
		ref.Name, f.Definition.Name).
		With("upstream", ref.Name).With("version", ref.Range).
		Suggest("put that version into the global registry, or configure the registry that has it")
}

// Change says how a field differs between a fork and its upstream.
type Change string

// The changes.
const (
	Added    Change = "added"   // only the fork has it
	Removed  Change = "removed" // only upstream has it
	Modified Change = "modified"
)

// Difference is one field that differs.
type Difference struct {
	Field    string `json:"field"`
	Local    any    `json:"local"`
	Upstream any    `json:"upstream"`
	Change   Change `json:"changeType" enum:"added,removed,modified"`
}

// Diff compares the fields of a fork, one by one, with the version of upstream that it was forked from. A Markdown
// file's text is a field; what says where the fork comes from is none.
func (c *Catalog) Diff(ctx context.Context, f Fork) ([]Difference, error) {
	upstream, err := c.upstream(ctx, f)
	if err != nil {
		return nil, err
	}
	return differences(f, upstream), nil
}

func differences(f Fork, upstream *Found) []Difference {
	out := []Difference{}
	local, other := f.Definition.tree, upstream.Definition.tree
	keys := []string{}
	for _, tree := range []*value{local, other} {
		for _, e := range tree.entries {
			if e.key != "fork_of" && e.key != "fork" && !slices.Contains(keys, e.key) {
				keys = append(keys, e.key)
			}
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		mine, theirs := local.get(key), other.get(key)
		d := Difference{Field: key, Local: mine.jsonValue(), Upstream: theirs.jsonValue(), Change: Modified}
		switch {
		case theirs == nil:
			d.Change = Added
		case mine == nil:
			d.Change = Removed
		case reflect.DeepEqual(d.Local, d.Upstream):
			continue
		}
		out = append(out, d)
	}
	return out
}

package gitprovider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Registration is one provider as configuration made it: enabled, or disabled with a reason. Never absent, so that a
// refusal can name the variable that is missing.
type Registration struct {
	Name     string
	Provider Provider // nil when disabled
	Hosts    []string // hosts whose clone URLs it serves, lower case, compared exactly; HostLocal for file:// URLs
	// what the clone URLs of its repositories begin with, such as https://git.example.org; "": https and the first host
	Base     string
	Disabled string // why it is disabled, naming the variable; "" when enabled
}

// CloneURL returns the clone URL of a repository at the provider; "" if that is not known.
func (e Registration) CloneURL(owner, name string) string {
	base := e.Base
	if base == "" && len(e.Hosts) > 0 {
		base = "https://" + e.Hosts[0]
	}
	if base == "" {
		return ""
	}
	return base + "/" + owner + "/" + name
}

// Pin ties a repository to a provider: an allowlist entry such as gitea:joe/home-cluster, or an entry of the operator's
// policy.
type Pin struct {
	Provider, Owner, Name string // Provider may be "" in an entry of the policy
	BaseBranch            string // of an entry of the policy; "": not pinned
	Policy                bool   // an entry of the policy: it wins over the manifest
}

func (p Pin) matches(ref RepoRef) bool {
	return strings.EqualFold(p.Owner, ref.Owner) && strings.EqualFold(p.Name, ref.Name)
}

// Manifests finds the manifest of a mounted repository.
type Manifests interface {
	// Find returns the manifest of the mounted repository owner/name; found is false if none is mounted. An error says
	// which file is broken, and why.
	Find(owner, name string) (m Manifest, found bool, err error)
}

// Registry holds the providers and decides which of them serves a repository.
type Registry struct {
	entries   []Registration
	pins      func() []Pin // as they are now
	fallback  string
	manifests Manifests
}

// NewRegistry makes a registry. fallback is the default provider's name or ""; manifests may be nil.
func NewRegistry(entries []Registration, pins []Pin, fallback string, manifests Manifests) *Registry {
	r := &Registry{entries: entries, fallback: fallback, manifests: manifests}
	return r.PinnedBy(func() []Pin { return pins })
}

// PinnedBy returns the registry with pins that are asked for at each resolution.
func (r *Registry) PinnedBy(pins func() []Pin) *Registry {
	return &Registry{entries: r.entries, pins: pins, fallback: r.fallback, manifests: r.manifests}
}

// Entries returns all registrations, in the order in which they were given.
func (r *Registry) Entries() []Registration { return slices.Clone(r.entries) }

// Resolution is the provider that serves a repository.
type Resolution struct {
	Provider   Provider
	Repo       RepoRef
	BaseBranch string // pinned by the operator's policy, else declared by the manifest, or ""
	Via        string // what settled it, for people: "clone_url host git.example.org"
}

// Resolve finds the provider of a repository, by the first of these that speaks: a pin of the operator's policy, the
// manifest of the mounted repository, the clone URL's host, an allowlist entry that names a provider, the default
// provider, the only enabled provider.
//
// provider_unresolved says which of these would settle it. provider_disabled names what the provider lacks.
func (r *Registry) Resolve(ref RepoRef) (Resolution, error) {
	res := Resolution{Repo: ref}
	name, via, err := r.chooseProvider(&res)
	if err != nil {
		return Resolution{}, err
	}
	return r.resolveAt(name, via, res)
}

// ResolveAt is Resolve for a repository whose provider is known already, from the record of an earlier proposal.
func (r *Registry) ResolveAt(name string, ref RepoRef) (Resolution, error) {
	res := Resolution{Repo: ref}
	if _, _, err := r.readManifest(&res); err != nil {
		return Resolution{}, err
	}
	return r.resolveAt(name, "the record of the proposal", res)
}

func (r *Registry) resolveAt(name, via string, res Resolution) (Resolution, error) {
	entry := r.registration(name)
	switch {
	case entry == nil:
		return Resolution{}, fault.New(fault.ProviderUnresolved,
			"%s asks for the provider %s, which does not exist; %s do", via, printable(name), r.names())
	case entry.Provider == nil:
		return Resolution{}, fault.New(fault.ProviderDisabled, "the provider %s (%s) is disabled: %s", name, via,
			entry.Disabled)
	}
	res.Provider, res.Via = entry.Provider, via
	return res, nil
}

// chooseProvider names the provider and says what settled it. It fills in what the manifest adds.
func (r *Registry) chooseProvider(res *Resolution) (name, via string, err error) {
	ref := res.Repo
	m, found, err := r.readManifest(res)
	if err != nil {
		return "", "", err
	}
	if pin := r.policyPin(ref); pin.Provider != "" {
		return pin.Provider, "the operator's policy", r.agrees(pin.Provider, "the operator's policy", ref)
	}
	if found && m.Provider != "" {
		const via = "the mounted repository's " + ManifestFile
		return strings.ToLower(m.Provider), via, r.agrees(m.Provider, via, ref)
	}
	if ref.Remote != nil {
		return r.byCloneURL(ref)
	}
	if found && m.Remote != "" {
		remote, err := ParseRemote(m.Remote)
		if err != nil {
			return "", "", fault.New(fault.ProviderUnresolved, "the remote in the mounted repository's %s %s", ManifestFile, err)
		}
		return r.byHost(remote.Host, "the remote in the mounted repository's "+ManifestFile)
	}
	for _, pin := range r.pins() {
		if !pin.Policy && pin.matches(ref) && pin.Provider != "" {
			return pin.Provider, "an entry of CLAUDEOPS_REPOS", nil
		}
	}
	if r.fallback != "" {
		return r.fallback, "CLAUDEOPS_DEFAULT_PROVIDER", nil
	}
	return r.onlyEnabled(ref)
}

// policyPin returns the entry of the operator's policy about a repository; the zero Pin if there is none.
func (r *Registry) policyPin(ref RepoRef) Pin {
	for _, pin := range r.pins() {
		if pin.Policy && pin.matches(ref) {
			return pin
		}
	}
	return Pin{}
}

// readManifest finds the manifest and fills in the base branch: that of the policy wins. The manifest is not read if
// the policy already settles everything, so that a broken one does no harm.
func (r *Registry) readManifest(res *Resolution) (m Manifest, found bool, err error) {
	pin := r.policyPin(res.Repo)
	res.BaseBranch = pin.BaseBranch
	if pin.Provider != "" && pin.BaseBranch != "" {
		return m, false, nil
	}
	m, found, err = r.findManifest(res.Repo)
	if found && err == nil && pin.BaseBranch == "" {
		res.BaseBranch = m.BaseBranch
	}
	return m, found, err
}

func (r *Registry) findManifest(ref RepoRef) (Manifest, bool, error) {
	if r.manifests == nil {
		return Manifest{}, false, nil
	}
	m, found, err := r.manifests.Find(ref.Owner, ref.Name)
	if err != nil {
		return m, false, fault.Wrap(err, fault.ProviderUnresolved, "the manifest of the mounted repository is broken: %s",
			err)
	}
	return m, found, nil
}

// agrees refuses a clone URL that leads to another provider than the manifest or the policy: one of the two is wrong,
// and guessing could send a change to the wrong host. by says who declares the provider.
func (r *Registry) agrees(provider, by string, ref RepoRef) error {
	if ref.Remote == nil {
		return nil
	}
	name, _, err := r.byHost(ref.Remote.Host, "clone_url")
	if err == nil && strings.EqualFold(name, provider) {
		return nil
	}
	correct := ""
	if e := r.registration(strings.ToLower(provider)); e != nil {
		correct = ": " + e.CloneURL(ref.Owner, ref.Name)
	}
	return fault.New(fault.ProviderUnresolved,
		"clone_url (host %s) does not belong to the provider %s that %s declares; leave clone_url out, or give that of "+
			"this provider%s",
		printable(ref.Remote.Host), printable(provider), by, correct)
}

func (r *Registry) byCloneURL(ref RepoRef) (name, how string, err error) {
	name, how, err = r.byHost(ref.Remote.Host, "clone_url")
	if urls := r.cloneURLs(ref); err != nil && urls != "" {
		return "", "", fault.New(fault.ProviderUnresolved, "%s. Possible as clone_url: %s", fault.From(err).Message, urls)
	}
	return name, how, err
}

// cloneURLs lists what would settle the provider of a repository as its clone_url.
func (r *Registry) cloneURLs(ref RepoRef) string {
	var out []string
	for _, e := range r.entries {
		if address := e.CloneURL(ref.Owner, ref.Name); address != "" && e.Provider != nil {
			out = append(out, fmt.Sprintf("%s (%s)", address, e.Name))
		}
	}
	return strings.Join(out, ", ")
}

func (r *Registry) byHost(host, via string) (name, how string, err error) {
	for _, e := range r.entries {
		if slices.Contains(e.Hosts, host) {
			return e.Name, via + " (host " + host + ")", nil
		}
	}
	return "", "", fault.New(fault.ProviderUnresolved,
		"no provider is configured for the host %s of %s; hosts are compared exactly. Configured: %s",
		printable(host), via, r.hosts())
}

func (r *Registry) onlyEnabled(ref RepoRef) (name, via string, err error) {
	var enabled []string
	for _, e := range r.entries {
		if e.Provider != nil {
			enabled = append(enabled, e.Name)
		}
	}
	switch len(enabled) {
	case 1:
		return enabled[0], "the only enabled provider", nil
	case 0:
		return "", "", fault.New(fault.ProviderDisabled, "no provider is enabled: %s", r.reasons())
	}
	return "", "", fault.New(fault.ProviderUnresolved,
		"%s are enabled and nothing says which one serves %s; give clone_url: %s; or have the operator set "+
			"CLAUDEOPS_DEFAULT_PROVIDER, name the provider in CLAUDEOPS_REPOS, or mount the repository with a %s that names it",
		strings.Join(enabled, ", "), ref, r.cloneURLs(ref), ManifestFile)
}

func (r *Registry) registration(name string) *Registration {
	for i := range r.entries {
		if r.entries[i].Name == name {
			return &r.entries[i]
		}
	}
	return nil
}

func (r *Registry) names() string {
	var out []string
	for _, e := range r.entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, ", ")
}

func (r *Registry) hosts() string {
	var out []string
	for _, e := range r.entries {
		for _, h := range e.Hosts {
			out = append(out, fmt.Sprintf("%s (%s)", h, e.Name))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func (r *Registry) reasons() string {
	var out []string
	for _, e := range r.entries {
		out = append(out, e.Name+": "+e.Disabled)
	}
	return strings.Join(out, "; ")
}

// ManifestFile is the name of the manifest at the root of a monitored repository.
const ManifestFile = "CLAUDE-OPS.md"

// Manifest holds the declarations of the section "## Git Provider" of a CLAUDE-OPS.md. Empty fields were not declared.
type Manifest struct {
	Provider   string
	Remote     string // clone URL
	Owner      string
	Repo       string
	BaseBranch string
}

// Matches reports whether the manifest is about the repository: the owner and name that it declares are the same,
// letter case aside. A manifest that does not say both matches nothing.
func (m Manifest) Matches(owner, name string) bool {
	return m.Owner != "" && strings.EqualFold(m.Owner, owner) && strings.EqualFold(m.Repo, name)
}

// maxManifestBytes bounds the manifest files that are read; larger ones are refused.
const maxManifestBytes = 1 << 20

// ParseManifest reads the section "## Git Provider": lines of the form "key: value", as list items or not, keys and
// values optionally in bold or backticks. Prose lines in the section are passed over. The section is optional; the zero
// Manifest stands for its absence. Errors name the line: an unknown key in a list item, a key given twice, an empty
// value, a second section.
func ParseManifest(text string) (Manifest, error) {
	var m Manifest
	if len(text) > maxManifestBytes {
		return m, fmt.Errorf("%s is larger than %d bytes", ManifestFile, maxManifestBytes)
	}
	inSection, seenSection, inFence := false, false, false
	given := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimSuffix(line, "\r"))
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			inFence = !inFence
			continue
		}
		if level, title := heading(line); level > 0 && !inFence {
			isOurs := level == 2 && strings.EqualFold(title, "Git Provider")
			if isOurs && seenSection {
				return Manifest{}, fmt.Errorf("%s:%d: a second section \"## Git Provider\"; keep one", ManifestFile, i+1)
			}
			inSection, seenSection = isOurs, seenSection || isOurs
			continue
		}
		if !inSection {
			continue
		}
		if err := m.parseManifestLine(line, i+1, given); err != nil {
			return Manifest{}, err
		}
	}
	return m, nil
}

func heading(line string) (level int, title string) {
	level = len(line) - len(strings.TrimLeft(line, "#"))
	if level == 0 || level > 6 || level == len(line) || line[level] != ' ' && line[level] != '\t' {
		return 0, ""
	}
	return level, strings.TrimSpace(strings.TrimRight(strings.TrimSpace(line[level:]), "#"))
}

// parseManifestLine reads one line of the section.
func (m *Manifest) parseManifestLine(line string, number int, given map[string]int) error {
	item, isItem := listItem(line)
	key, value, ok := strings.Cut(item, ":")
	if !ok {
		return nil
	}
	key = strings.ToLower(strings.Trim(key, "*_` \t"))
	value = strings.Trim(strings.TrimLeft(value, "*"), "` \t")
	field := m.fieldOf(key)
	switch {
	case field == nil && isItem:
		return fmt.Errorf("%s:%d: unknown key %s; provider, remote, owner, repo and base_branch are understood",
			ManifestFile, number, printable(key))
	case field == nil:
		return nil
	case given[key] > 0:
		return fmt.Errorf("%s:%d: %s was given on line %d already", ManifestFile, number, key, given[key])
	case value == "":
		return fmt.Errorf("%s:%d: %s has no value", ManifestFile, number, key)
	}
	given[key] = number
	*field = value
	return nil
}

func listItem(line string) (rest string, isItem bool) {
	for _, bullet := range []string{"- ", "* ", "+ "} {
		if strings.HasPrefix(line, bullet) {
			return strings.TrimSpace(line[2:]), true
		}
	}
	return line, false
}

func (m *Manifest) fieldOf(key string) *string {
	switch key {
	case "provider":
		return &m.Provider
	case "remote":
		return &m.Remote
	case "owner":
		return &m.Owner
	case "repo":
		return &m.Repo
	case "base_branch":
		return &m.BaseBranch
	}
	return nil
}

// String writes the manifest's section in the form that ParseManifest reads.
func (m Manifest) String() string {
	var b strings.Builder
	b.WriteString("## Git Provider\n\n")
	for _, key := range []string{"provider", "remote", "owner", "repo", "base_branch"} {
		if v := *m.fieldOf(key); v != "" {
			fmt.Fprintf(&b, "- %s: %s\n", key, v)
		}
	}
	return b.String()
}

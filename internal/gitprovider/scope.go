package gitprovider

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Scope decides which paths may be proposed. The zero Scope allows nothing.
//
// An allow pattern matches the whole path, letter case included. A deny pattern is compared without letter case; one
// without a slash denies that name in any folder, as file or folder, with one exception: SKILL.md does not deny the
// file of that name in a skill's own folder, .claude-ops/skills/NAME, or where a FileKind has skills. Deny wins. `*`
// stays within a segment, `**` spans segments.
type Scope struct {
	allow, deny []string
	policyNames []string // base names of policy files: denied whatever allow and deny say
	kinds       []FileKind
	tier        Tier // that asks; 0: one that no kind admits anything for
}

const (
	// skillName as a deny pattern does not hold for a skill's own folder: skillFile.
	skillName = "SKILL.md"
	skillFile = ".claude-ops/skills/*/SKILL.md"
)

// DefaultAllow returns the allow list of the embedded policy (design §3, gate 3).
func DefaultAllow() []string {
	return []string{
		"checks/*.md", "playbooks/*.md",
		".claude-ops/checks/*.md", ".claude-ops/playbooks/*.md", ".claude-ops/skills/*.md", skillFile,
		"CLAUDE-OPS.md",
	}
}

// DefaultDeny returns the deny list of the embedded policy (design §3, gate 3): named in a refusal even where the allow
// list excludes a path already, so that the caller learns why. .claude-ops/mcp.json is ours: it may bring the agent MCP
// servers. The names from CLAUDE.md to SKILL.md work as instructions to agents in whatever folder they are.
func DefaultDeny() []string {
	return []string{
		"prompts/**", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", "copilot-instructions.md", ".cursorrules",
		skillName,
		"entrypoint.sh", "*.yaml", "*.yml", "Dockerfile", "Dockerfile.*", "*.go",
		".env*", "*.env", ".github/**", ".gitea/**", ".forgejo/**", ".claude/**", ".agents/**", ".mcp.json",
		".claude-ops/mcp.json",
		"CODEOWNERS", ".gitmodules", ".gitattributes", ".githooks/**", ".husky/**",
	}
}

// defaultPolicyNames returns the names under which a policy file is looked for by people; never proposable.
func defaultPolicyNames() []string { return []string{"claudeops-policy.yaml", "claudeops-policy.yml"} }

// NewScope builds a Scope. policyFile is the operator's policy file, or "": a file of that name can't be proposed in
// any folder. An error names the pattern that is malformed.
func NewScope(allow, deny []string, policyFile string) (Scope, error) {
	for _, list := range [][]string{allow, deny} {
		for _, p := range list {
			if err := checkPattern(p); err != nil {
				return Scope{}, fmt.Errorf("scope pattern %q %w", p, err)
			}
		}
	}
	names := defaultPolicyNames()
	if policyFile != "" {
		names = append(names, strings.ToLower(path.Base(policyFile)))
	}
	return Scope{allow: allow, deny: deny, policyNames: names}, nil
}

// DefaultScope returns the scope of the embedded policy.
func DefaultScope() Scope {
	return Scope{allow: DefaultAllow(), deny: DefaultDeny(), policyNames: defaultPolicyNames()}
}

// Allow returns the allow patterns.
func (s Scope) Allow() []string { return append([]string(nil), s.allow...) }

// Patterns are those of all paths that the scope may allow: first those of kinds of files, which the operator has
// named.
func (s Scope) Patterns() (out []string) {
	for _, kind := range s.kinds {
		if s.tier >= kind.LowestTier() {
			out = append(out, kind.Patterns...)
		}
	}
	return append(out, s.allow...)
}

// Deny returns the deny patterns, the policy file's names included.
func (s Scope) Deny() []string { return append(append([]string(nil), s.deny...), s.policyNames...) }

func checkPattern(p string) error {
	switch {
	case p == "" || p[0] == '/':
		return fmt.Errorf("must be relative to the repository's root and not empty")
	case !doublestar.ValidatePattern(p):
		return fmt.Errorf("is malformed")
	case strings.Contains("/"+p+"/", "/../") || strings.Contains("/"+p+"/", "/./") || strings.Contains(p, "//"):
		return fmt.Errorf("has an empty, '.' or '..' segment; paths with those are never accepted")
	}
	return nil
}

// ScopeVerdict is the answer for one path.
type ScopeVerdict struct {
	Path    string
	Allowed bool
	Rule    string           // the pattern that allowed or denied it, "canonical-path" or "not-in-allow-list"
	Reason  *fault.Violation // nil when allowed
	path    Path             // set when the form is canonical
}

// Rules that are not a pattern.
const (
	RuleCanonicalPath  = "canonical-path"
	RuleNotInAllowList = "not-in-allow-list"
	RulePathCollision  = "path-collision"
	RulePolicyFile     = "policy-file"
)

// plainest returns the canonical path that is meant by one that is not, as far as that is clear, or else an example.
func plainest(raw string) string {
	plain := strings.TrimPrefix(path.Clean("/"+raw), "/")
	if _, err := ParsePath(plain); err != nil || slices.Contains(strings.Split(raw, "/"), "..") {
		return "checks/disk.md"
	}
	return plain
}

// Check says whether one path may be proposed, and by which rule. A deny pattern that matches is named even when the
// form of the path is refused as well.
func (s Scope) Check(raw string) ScopeVerdict {
	p, formErr := ParsePath(raw)
	kind := s.KindOf(raw)
	if formErr == nil && outsideOfKinds(p, kind) {
		p, formErr = Path{}, fmt.Errorf("has a hidden segment (one that begins with a dot)")
	}
	verdict := ScopeVerdict{Path: raw, path: p}
	deny, isDenied := s.denied(raw, kind)
	allow := s.allowedBy(raw)
	switch {
	case isDenied:
		verdict.deny(deny, "is protected by the rule "+deny, "leave this file to a person; propose only "+s.hint())
		verdict.Reason.Final = true
	case formErr != nil:
		verdict.deny(RuleCanonicalPath, formErr.Error(), "give the plain path, such as "+plainest(raw))
	case kind != nil:
		s.ofKind(kind, &verdict)
	case allow == "":
		verdict.deny(RuleNotInAllowList, "is outside the scope", "propose only "+s.hint())
		verdict.Reason.Final = true
	default:
		verdict.Allowed, verdict.Rule = true, allow
	}
	return verdict
}

func (v *ScopeVerdict) deny(rule, problem, suggestion string) {
	v.Rule = rule
	v.Reason = &fault.Violation{
		Code: fault.ScopeDenied, Path: v.echo(), Rule: rule,
		Message: "the path " + printable(v.Path) + " " + problem, Suggestion: suggestion,
	}
}

// echo returns the path as a refusal repeats it: as it is when its form is canonical, else harmless and short.
func (v *ScopeVerdict) echo() string {
	if v.path.s != "" {
		return v.path.s
	}
	return printable(v.Path)
}

func (s Scope) hint() string { return strings.Join(s.Patterns(), ", ") }

func (s Scope) allowedBy(raw string) string {
	for _, pattern := range s.allow {
		if ok, _ := doublestar.Match(pattern, raw); ok {
			return pattern
		}
	}
	return ""
}

// denied compares without letter case. It also takes paths whose form is refused, so that the better reason is named.
// kind is the FileKind that the path is of, which may be YAML or a skill's; nil for none.
func (s Scope) denied(raw string, kind *FileKind) (rule string, found bool) {
	folded := strings.ToLower(raw)
	segments := strings.Split(folded, "/")
	for _, name := range s.policyNames {
		if segments[len(segments)-1] == name {
			return RulePolicyFile, true
		}
	}
	for _, pattern := range s.deny {
		if kind != nil && kind.lifts(pattern, raw) {
			continue
		}
		if matchFolded(strings.ToLower(pattern), folded, segments) {
			return pattern, true
		}
	}
	return "", false
}

func matchFolded(pattern, folded string, segments []string) bool {
	if strings.Contains(pattern, "/") {
		ok, _ := doublestar.Match(pattern, folded)
		return ok
	}
	if pattern == strings.ToLower(skillName) && isSkill(folded) {
		segments = segments[:len(segments)-1]
	}
	for _, segment := range segments {
		if ok, _ := doublestar.Match(pattern, segment); ok {
			return true
		}
	}
	return false
}

// isSkill reports whether a path in lower case is the file of a skill in its own folder.
func isSkill(folded string) bool {
	ok, _ := doublestar.Match(strings.ToLower(skillFile), folded)
	return ok
}

// ValidateScope checks every path of a request: its form, the scope, and that no two of them are, or could become on a
// file system that ignores letter case, the same file or a file and a folder of one name. It returns every violation.
func ValidateScope(scope Scope, files []FileChange) []fault.Violation {
	var out []fault.Violation
	seen := newSpellings()
	for _, f := range files {
		verdict := scope.Check(f.Path)
		if verdict.Reason != nil {
			out = append(out, *verdict.Reason)
		}
		if verdict.path.s == "" {
			continue
		}
		if other, clash := seen.add(verdict.path); clash {
			out = append(out, fault.Violation{
				Code: fault.ScopeDenied, Path: f.Path, Rule: RulePathCollision,
				Message:    fmt.Sprintf("the path %s collides with %s in the same request", printable(f.Path), printable(other)),
				Suggestion: "name every file once, and spell folders in one way",
			})
		}
	}
	return out
}

// spellings remembers how each file and folder of a request is spelled, by its folded form.
type spellings struct {
	files, dirs map[string]string
}

func newSpellings() spellings { return spellings{map[string]string{}, map[string]string{}} }

// add records a path and reports the earlier spelling that it collides with.
func (s spellings) add(p Path) (other string, clash bool) {
	folded := strings.ToLower(p.s)
	for _, same := range []map[string]string{s.files, s.dirs} {
		if have, ok := same[folded]; ok {
			return have, true
		}
	}
	for _, dir := range p.Ancestors() {
		key := strings.ToLower(dir)
		if have, ok := s.files[key]; ok {
			return have, true
		}
		if have, ok := s.dirs[key]; ok && have != dir {
			return have, true
		}
	}
	s.files[folded] = p.s
	for _, dir := range p.Ancestors() {
		s.dirs[strings.ToLower(dir)] = dir
	}
	return "", false
}

// FileKind is a kind of files that a toolset understands. Where the operator's policy names it (scope.kinds), tier 3
// may propose such files, if their validator accepts them.
type FileKind struct {
	Name string // as the policy has it
	// Small says that the policy may let tier 2 propose such files, too (tiers.2.kinds); Tier2 says that it does.
	Small, Tier2 bool
	// of paths, letter case included. They admit .yaml and .yml, and the folders .fractary, .claude and .agents; nothing
	// else about paths changes
	Patterns []string
	// Lifts are rules of the deny list that do not hold for such files, compared letter for letter: naming the kind says
	// more than they do.
	Lifts []string
	// Skills are patterns of the files SKILL.md of skills in folders of their own, which the rule SKILL.md does not deny.
	Skills []string
	// Validate says what is wrong with a file that would be created or updated; nothing if it is sound. It reads nothing
	// else. before is the text that the file has on the branch, "" for a new file and while the branch was not read: what
	// is refused then is judged again with it.
	Validate func(path, before, content string) []FileProblem
}

// LowestTier returns the lowest tier that may propose files of the kind.
func (k FileKind) LowestTier() Tier {
	if k.Tier2 {
		return TierInvestigate
	}
	return TierRemediate
}

// FileProblem describes an error at one place of a file.
type FileProblem struct {
	Line, Column int // from 1; 0 where no place is to blame
	Message      string
	Suggestion   string
}

// NewFileProblem makes one of a message. Its line is the one that the message names, as parsers of YAML do ("line 3").
func NewFileProblem(message string) FileProblem {
	p := FileProblem{Message: message}
	if found := regexp.MustCompile(`\bline (\d{1,9})\b`).FindStringSubmatch(message); found != nil {
		p.Line, _ = strconv.Atoi(found[1]) // at most nine digits
	}
	return p
}

// isKindFolder reports whether a hidden folder is one that a path may have, beside .claude-ops, where a FileKind admits
// it.
func isKindFolder(segment string) bool { return segment == ".fractary" || isAgentFolder(segment) }

// isAgentFolder reports whether a folder has the settings of agents, and is admitted at the top of the repository
// alone.
func isAgentFolder(segment string) bool { return segment == ".claude" || segment == ".agents" }

// WithKinds returns a scope that also admits files of some kinds.
func (s Scope) WithKinds(kinds ...FileKind) Scope {
	s.kinds = append(append([]FileKind(nil), s.kinds...), kinds...)
	return s
}

// At returns the scope as it is for a tier.
func (s Scope) At(t Tier) Scope {
	s.tier = t
	return s
}

// Kinds returns the kinds of files that are admitted.
func (s Scope) Kinds() []FileKind { return append([]FileKind(nil), s.kinds...) }

// KindOf returns the kind that a path is of; nil for none.
func (s Scope) KindOf(name string) *FileKind {
	for i, kind := range s.kinds {
		for _, pattern := range kind.Patterns {
			if ok, _ := doublestar.Match(pattern, name); ok {
				return &s.kinds[i]
			}
		}
	}
	return nil
}

// ofKind judges a path that is of a kind and in canonical form. What the operator or the default denies stays denied,
// but for the endings of YAML.
func (s Scope) ofKind(kind *FileKind, verdict *ScopeVerdict) {
	if s.tier < kind.LowestTier() {
		verdict.deny("kind:"+kind.Name, fmt.Sprintf("is one of the kind %s, which tier %s and above may propose", kind.Name,
			kind.LowestTier()),
			"describe the wanted change in your report, so that a higher tier or a person takes it up")
		verdict.Reason.Code, verdict.Reason.Final = fault.TierDenied, true
		return
	}
	verdict.Allowed, verdict.Rule = true, "kind:"+kind.Name
}

// lifts reports whether a rule of the deny list does not hold for a file of this kind.
func (k FileKind) lifts(rule, raw string) bool {
	return rule == "*.yaml" || rule == "*.yml" || slices.Contains(k.Lifts, rule) || rule == skillName && k.hasSkill(raw)
}

// hasSkill reports whether a path is the file of a skill of this kind. Beside its own name, no part of it may be one.
func (k FileKind) hasSkill(raw string) bool {
	folder, name := path.Split(raw)
	if name != skillName || strings.Contains(strings.ToLower(folder), strings.ToLower(skillName)) {
		return false
	}
	return slices.ContainsFunc(k.Skills, func(pattern string) bool {
		ok, _ := doublestar.Match(pattern, raw)
		return ok
	})
}

// outsideOfKinds reports whether a path has a hidden folder that only kinds admit, and none does.
func outsideOfKinds(p Path, kind *FileKind) bool {
	for i, segment := range strings.Split(p.s, "/") {
		if isKindFolder(segment) && (kind == nil || isAgentFolder(segment) && i > 0) {
			return true
		}
	}
	return false
}

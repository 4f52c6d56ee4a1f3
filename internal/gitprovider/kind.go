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

// FileKind is a kind of files that a toolset understands. Where the operator's policy names it (scope.kinds), tier 3
// may propose such files, if their validator accepts them.
type FileKind struct {
	Name string // as the policy has it
	// of paths, letter case included. They admit .yaml and .yml, and the folders .fractary and .claude; nothing else about
	// paths changes
	Patterns []string
	// Lifts are rules of the deny list that do not hold for such files, compared letter for letter: naming the kind says
	// more than they do.
	Lifts []string
	// Skills are patterns of the files SKILL.md of skills in folders of their own, which the rule SKILL.md does not deny.
	Skills []string
	// Validate says what is wrong with a file that would be created or updated; nothing if it is sound. It reads nothing
	// else.
	Validate func(path, content string) []FileProblem
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
func isKindFolder(segment string) bool { return segment == ".fractary" || segment == claudeFolder }

// kindTier is the lowest tier that may propose files of a FileKind.
const kindTier = TierRemediate

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

// Kinds returns the names and patterns of the kinds that are admitted at tier 3.
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
	if s.tier < kindTier {
		verdict.deny("kind:"+kind.Name, fmt.Sprintf("is one of the kind %s, which tier %s and above may propose", kind.Name,
			kindTier),
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

// claudeFolder is the hidden folder of Claude Code, whose other files say what its sessions may do.
const claudeFolder = ".claude"

// outsideOfKinds reports whether a path has a hidden folder that only kinds admit, and none does: .claude is admitted
// at the top of the repository alone.
func outsideOfKinds(p Path, kind *FileKind) bool {
	for i, segment := range strings.Split(p.s, "/") {
		if isKindFolder(segment) && (kind == nil || segment == claudeFolder && i > 0) {
			return true
		}
	}
	return false
}

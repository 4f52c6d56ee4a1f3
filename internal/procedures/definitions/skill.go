package definitions

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/markdown"
	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// Bounds of the header of a skill, in characters, as agentskills.io has them.
const (
	maxSkillName     = 64
	maxSkillAbout    = 1024
	maxCompatibility = 500
)

const skillFileName = "SKILL.md"

// SkillFileKinds are the skills of Claude Code, in .claude/skills, and those that other agents read, in .agents/skills:
// SKILL.md and the Markdown of its folder references. They must be sound by the published format, and give no rights,
// run no command and lead nowhere that the file before did not.
func SkillFileKinds() []gitprovider.FileKind {
	kind := func(name, folder string) gitprovider.FileKind {
		skill := folder + "/skills/*/" + skillFileName
		return gitprovider.FileKind{
			Name: name, Small: true, Patterns: []string{skill, folder + "/skills/*/references/*.md"},
			Lifts: []string{folder + "/**"}, Skills: []string{skill}, Validate: checkSkillFile,
		}
	}
	return []gitprovider.FileKind{kind("claude-skills", claudeFolder), kind("agent-skills", ".agents")}
}

func checkSkillFile(name, before, content string) (out []gitprovider.FileProblem) {
	folder := path.Dir(name)
	if path.Base(name) == skillFileName {
		out = append(checkSkillHeader(path.Base(folder), before, content), newCommands(before, content)...)
	} else {
		folder = path.Dir(folder)
	}
	return append(out, newLinksOut(name, folder, before, content)...)
}

// checkSkillHeader judges the header of a SKILL.md. One that the change leaves as it was is not judged.
func checkSkillHeader(folder, before, content string) (out []gitprovider.FileProblem) {
	now, ok := strictyaml.CutFrontMatter(content)
	if !ok {
		return []gitprovider.FileProblem{{Line: 1, Message: "it has no front matter",
			Suggestion: "begin it with a line ---, name and description, and a line ---"}}
	}
	if old, had := strictyaml.CutFrontMatter(before); had && old.Header == now.Header {
		return nil
	}
	fields, problem := now.Fields()
	if problem != "" {
		p := gitprovider.NewFileProblem("its front matter is not YAML: " + problem)
		p.Suggestion = "put texts that have a colon or begin with a sign in quotes"
		return []gitprovider.FileProblem{p}
	}
	for _, problem := range skillFieldProblems(folder, fields) {
		out = append(out, gitprovider.FileProblem{Line: 1, Message: problem.Message, Suggestion: problem.Suggestion})
	}
	for _, grant := range facts.Grants(before, content) {
		out = append(out, gitprovider.FileProblem{
			Line: grant.Line, Message: fmt.Sprintf("%s gives the agent more than before: %s", grant.Field, grant.Words),
			Suggestion: "leave it out, and ask a person to add it",
		})
	}
	return out
}

// checkSkill holds the header of a skill against the published format.
func (c *checker) checkSkill(header *value, folder string) {
	fields, _ := header.jsonValue().(map[string]any)
	for _, p := range skillFieldProblems(folder, fields) {
		p.Line, p.Column, p.Severity = header.line, header.column, SeverityError
		c.problems = append(c.problems, p)
	}
}

var skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// skillFieldProblems judges the fields that the published format has.
func skillFieldProblems(folder string, fields map[string]any) (out []Problem) {
	add := func(message, suggestion string) {
		out = append(out, Problem{Message: message, Suggestion: suggestion})
	}
	name, about := strictyaml.Text(fields, "name"), strictyaml.Text(fields, "description")
	switch {
	case name == "":
		add("its front matter has no name", "add name: "+folder)
	case !skillName.MatchString(name) || len(name) > maxSkillName:
		add(fmt.Sprintf("the name %.80q is not one of at most %d small letters, digits and single hyphens", name, maxSkillName),
			"name it as its folder")
	case name != folder:
		add(fmt.Sprintf("the name %q is not that of its folder, %q", name, folder), "write name: "+folder)
	}
	switch n := utf8.RuneCountInString(about); {
	case n == 0:
		add("its front matter has no description", "say in it what the skill does, and when to use it")
	case n > maxSkillAbout:
		add(fmt.Sprintf("the description has %d characters; at most %d are read", n, maxSkillAbout), "shorten it")
	}
	if text, is := fields["compatibility"].(string); is && utf8.RuneCountInString(text) > maxCompatibility {
		add(fmt.Sprintf("compatibility has more than %d characters", maxCompatibility), "shorten it")
	}
	return out
}

// newCommands lists the commands that Claude Code would run by reading the file, and that were not in it before:
// !`command` after white space, and blocks that begin with ```!.
func newCommands(before, content string) (out []gitprovider.FileProblem) {
	had := commandsIn(before)
	for text, line := range commandsIn(content) {
		if _, stood := had[text]; !stood {
			out = append(out, gitprovider.FileProblem{
				Line: line, Message: fmt.Sprintf("an agent that reads it would run %.80q at once", text),
				Suggestion: "tell the agent in words to run the command; to write about the form, leave the ! out",
			})
		}
	}
	slices.SortFunc(out, func(a, b gitprovider.FileProblem) int { return a.Line - b.Line })
	return out
}

// A space is what is not a printable sign of ASCII: programs have different lists of spaces.
var inlineCommand = regexp.MustCompile("(?:^|[^!-~])!`([^`]+)")

// commandsIn returns the commands that reading a text runs, with their lines from 1.
func commandsIn(text string) map[string]int {
	out := map[string]int{}
	lineOf := func(at int) int { return strings.Count(text[:at], "\n") + 1 }
	for _, found := range inlineCommand.FindAllStringSubmatchIndex(text, -1) {
		out[text[found[2]:found[3]]] = lineOf(found[2])
	}
	const opening = "```!"
	for at := 0; ; {
		next := strings.Index(text[at:], opening)
		if next < 0 {
			return out
		}
		at += next + len(opening)
		command, _, _ := strings.Cut(text[at:], "```")
		out[command] = lineOf(at)
	}
}

// newLinksOut lists links to files outside of the skill's folder that were not in the file before.
func newLinksOut(name, folder, before, content string) (out []gitprovider.FileProblem) {
	old, _ := targetsIn(before)
	targets, tooMuch := targetsIn(content)
	if tooMuch != "" {
		return []gitprovider.FileProblem{{Message: "it cannot be searched for links: it has " + tooMuch,
			Suggestion: "divide it into smaller files"}}
	}
	for _, target := range targets {
		if !slices.Contains(old, target) && leadsOutOf(folder, path.Dir(name), target) {
			out = append(out, gitprovider.FileProblem{
				Message:    fmt.Sprintf("it links to %.120q, outside of the skill's folder", target),
				Suggestion: "link to files of " + folder + " alone, or name the other file without a link",
			})
		}
	}
	return out
}

var (
	// htmlTarget finds what HTML links to or shows.
	htmlTarget = regexp.MustCompile(`(?i)\b(?:href|src|srcset|data|action|poster)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
	// mention finds paths, from the folder that the agent works in, whose files Claude Code reads at once. A path without
	// quotes has a letter, a digit or two dots: people write @/ for the folder that imports begin with.
	mention = regexp.MustCompile(`(?m)(?:^|[^!-~])(@"(?:~|\.\.?)?[/\\][^"]*|` +
		`@(?:(?:~|\.\.)[/\\]|\.?[/\\][^\s"]*(?:[\pL\pN]|\.\.))[^\s"]*)`)
)

// targetsIn returns the targets of links, images, HTML and mentions of files in a text, each once. tooMuch says, in
// words that follow "it has", why the text is not parsed.
func targetsIn(content string) (out []string, tooMuch string) {
	text := content
	if f, ok := strictyaml.CutFrontMatter(content); ok {
		text = f.Body
	}
	source := []byte(text)
	document, tooMuch := markdown.New().Parse(source)
	if tooMuch != "" {
		return nil, tooMuch
	}
	html := func(segments interface{ Value([]byte) []byte }) {
		out = append(out, submatches(htmlTarget, string(segments.Value(source)))...)
	}
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			out = append(out, string(n.Destination))
		case *ast.Image:
			out = append(out, string(n.Destination))
		case *ast.AutoLink:
			out = append(out, string(n.URL(source)))
		case *ast.RawHTML:
			html(n.Segments)
		case *ast.HTMLBlock:
			html(n.Lines())
		}
		return ast.WalkContinue, nil
	})
	out = append(out, submatches(mention, text)...)
	slices.Sort(out)
	return slices.Compact(out), ""
}

// submatches returns the group that matched, of each match.
func submatches(form *regexp.Regexp, text string) (out []string) {
	for _, found := range form.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Join(found[1:], "")) // all others are empty
	}
	return out
}

// leadsOutOf reports whether a link in a file of dir leads to a file outside of a folder. Addresses of the web do not.
func leadsOutOf(folder, dir, target string) bool {
	if mention.MatchString(target) {
		return true
	}
	target, _, _ = strings.Cut(target, "#")
	target, _, _ = strings.Cut(target, "?")
	if plain, err := url.PathUnescape(target); err == nil {
		target = plain
	}
	target = strings.ReplaceAll(strings.TrimSpace(target), `\`, "/")
	if scheme := linkScheme.FindString(target); scheme != "" {
		return !slices.Contains([]string{"http:", "https:", "mailto:", "tel:"}, strings.ToLower(scheme))
	}
	if rest, ok := strings.CutPrefix(target, "${CLAUDE_SKILL_DIR}/"); ok {
		dir, target = folder, rest
	}
	if strings.HasPrefix(target, "/") || strings.HasPrefix(target, "~") ||
		strings.HasPrefix(target, "$") && strings.Contains(target, "..") {
		return true
	}
	whole := path.Join(dir, target)
	return whole != folder && !strings.HasPrefix(whole, folder+"/")
}

var linkScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// SkillEntry is a skill in a list.
type SkillEntry struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Source      Source `json:"source" enum:"local,global"`
	Path        string `json:"path"`
}

// SkillList is a page of skills.
type SkillList struct {
	Skills []SkillEntry `json:"skills"`
	Total  int          `json:"total"`
	Limit  int          `json:"limit"`
	Offset int          `json:"offset"`
	Notes  []string     `json:"notes,omitempty" doc:"What could not be read or was left out"`
}

// SkillsRequest selects skills.
type SkillsRequest struct {
	Source string `json:"source,omitempty" enum:"local,global,all" default:"all" doc:"local: the project; global: the user's home"`
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"100" doc:"Entries at most"`
	Offset int    `json:"offset,omitempty" minimum:"0" default:"0" doc:"Entries to skip"`
}

// SkillRequest names a skill.
type SkillRequest struct {
	Name   string `json:"name" positional:"true" required:"true" minLength:"1" maxLength:"256" doc:"Its name; NAME@.agents for that of .agents/skills where .claude/skills has one, too"`
	Source string `json:"source,omitempty" enum:"local,global,all" default:"all" doc:"Where to look"`
}

// SkillInfo is a skill.
type SkillInfo struct {
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	License      string   `json:"license,omitempty"`
	AllowedTools []string `json:"allowed_tools,omitempty" doc:"Tools that it may use without being asked"`
	Text         string   `json:"text" doc:"What agents read, below the header"`
	Source       Source   `json:"source" enum:"local,global"`
	Path         string   `json:"path"`
	Also         []string `json:"also,omitempty" doc:"Files of other skills that have this name"`
}

const skillPlaces = " of .claude/skills and .agents/skills in the project and in the user's home, each in the file " +
	"SKILL.md of its own folder"

func (s toolDeps) skillList() operation.Operation {
	return defineRead(s, readOperation("skill_list", "skill list", "List skills", "List skills", "List the skills"+
		skillPlaces+", by name, with description, source and path. Page with limit and offset. notes names files that are "+
		"broken; they are left out."), nil,
		func(ctx context.Context, v *inventory, in SkillsRequest) (SkillList, error) {
			list, err := v.listByKind(ctx, Skill, ListRequest{Source: in.Source, Limit: in.Limit, Offset: in.Offset})
			skills := make([]SkillEntry, 0, len(list.Tools))
			for _, e := range list.Tools {
				skills = append(skills, SkillEntry{e.Name, e.Description, e.Source, e.Path})
			}
			return SkillList{skills, list.Total, list.Limit, list.Offset, list.Notes}, err
		})
}

func (s toolDeps) skillInfo() operation.Operation {
	return defineRead(s, readOperation("skill_info", "skill info", "Read a skill", "Show a skill", "Read one skill"+
		skillPlaces+": its description, its text and where it is. The project comes first, and .claude/skills before "+
		".agents/skills; also lists the other files of this name. A broken skill is VALIDATION_ERROR with its problems."), nil,
		func(ctx context.Context, v *inventory, in SkillRequest) (SkillInfo, error) {
			m, err := v.catalog.Info(ctx, Skill, ParseReference(in.Name), sourceOf(in.Source))
			if err != nil {
				return SkillInfo{}, err
			}
			d := m.Definition
			out := SkillInfo{Name: d.Name, Description: d.Description, License: d.License, AllowedTools: d.Tools,
				Text: d.Prompt, Source: m.Source, Path: m.Path}
			all, _, err := v.catalog.List(ctx, Skill, sourceOf(in.Source))
			for _, other := range all {
				if other.Name == d.Name && other.Path != m.Path {
					out.Also = append(out.Also, other.Path)
				}
			}
			return out, err
		})
}

func (s toolDeps) skillValidate() operation.Operation {
	return s.validate(Skill, readOperation("skill_validate", "skill validate", "Validate a skill",
		"Check a skill against the published format", "Check a skill"+skillPlaces+", against the format of agentskills.io, "+
			"given by path or by name: name, description and lengths. A skill that is invalid is an answer with valid: false, "+
			"not an error of the call."))
}

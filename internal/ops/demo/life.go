package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
)

// The procedure of the demo, and its paths.
const (
	skill      = "free-disk"
	skillFile  = ".claude-ops/skills/" + skill + "/SKILL.md"
	forClaude  = ".claude/skills/" + skill + "/SKILL.md"
	forCodex   = ".codex/skills/" + skill + "/SKILL.md"
	checkout   = ".agentpack/repo"
	project    = "project"
	elsewhere  = "elsewhere"
	packing    = "package"
	configText = `version: 1
profiles: {default: {include_tags: [base]}}
targets: {codex: {scope: project}, claude_code: {scope: project, options: {write_repo_skills: true}}}
modules:
  - {id: "skill:free-disk", type: skill, tags: [base], source: {local_path: {path: .claude-ops/skills/free-disk}}}
`
	header    = "---\nname: free-disk\ndescription: Free room on a full disk of the cluster\n---\n# Free room\n\n"
	atFirst   = header + "Remove all journals: `journalctl --rotate --vacuum-time=1s`.\n"
	corrected = header + "Keep a week of journals: `journalctl --vacuum-time=7d`.\n"
	revised   = header + "Keep a week of journals: `journalctl --vacuum-time=7d`. Then look at `df -h` again.\n"
)

// life follows one procedure, from the moment at which an agent finds that it is wrong.
type life struct {
	*story
	before string // the snapshot of the first deployment
}

// RunLife plays the life of one procedure. The error says which step failed.
func RunLife(ctx context.Context, o Options) error {
	s, err := newStory(ctx, o, map[string]string{"agentpack.yaml": configText, skillFile: atFirst})
	if err != nil {
		return err
	}
	l := &life{story: s}
	for _, name := range []string{project, elsewhere + "/.aam", "registry", filepath.Dir(checkout)} {
		if err := files.MkdirAll(l.demoPath(name), 0o755); err != nil {
			return err
		}
	}
	if err := l.play(ctx, l.steps()); err != nil {
		return err
	}
	s.printf("\nThe demo is done. Its repository, project and records stay in %s\n", s.Dir)
	return nil
}

func (l *life) steps() []demoStep {
	return []demoStep{
		{"A skill is deployed to Claude Code and Codex", l.deploy},
		{"An agent finds it to be wrong, and corrects it where it is", l.correct},
		{"A person proposes the correction to where it comes from", l.proposeIt},
		{"Another person asks for more, on a line", l.commentPull},
		{"The agent revises, and answers", l.revise},
		{"It is approved and merged", l.mergePull},
		{"It is deployed, and nothing has drifted", l.deployAgain},
		{"It is packaged and published", l.publish},
		{"It is installed in another project", l.install},
		{"It is rolled back where it was deployed", l.rollBack},
		{"The record of it all, verified", func(ctx context.Context) error {
			_, err := l.operator(ctx, project, "audit", "verify")
			return err
		}},
	}
}

// demoPath returns a path below the demo's folder.
func (l *life) demoPath(name string) string { return filepath.Join(l.Dir, filepath.FromSlash(name)) }

// operator runs claudeops in a folder as who may deploy and install.
func (l *life) operator(ctx context.Context, folder string, args ...string) (string, error) {
	l.printf("%s$ claudeops %s\n", folder, shellWords(args))
	return l.runCommand(ctx, l.demoPath(folder), append(l.childEnv("3", false), "CLAUDEOPS_TOOLSETS=pr,deploy,packages",
		"CLAUDEOPS_ALLOW_WRITE=true"), args)
}

// git runs git in a folder.
func (l *life) git(ctx context.Context, folder string, args ...string) error {
	l.printf("%s$ git %s\n", folder, shellWords(args))
	result, err := l.runner.Run(ctx, git.Call{Dir: l.demoPath(folder), Args: args,
		Remote: &git.Remote{URL: trust.Said(l.repositoryPath())}}, git.Limits{})
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("git %s: exit status %d: %s", args[0], result.Code, result.Said)
	}
	return err
}

// holds returns an error unless both agents would read a text in the project.
func (l *life) holds(want string) error {
	for _, name := range []string{forClaude, forCodex} {
		text, _, err := files.ReadPath(l.demoPath(project+"/"+name), 1<<20)
		if err != nil || string(text) != want {
			return fmt.Errorf("%w: %s has %q, %w", errUnexpected, name, text, err)
		}
	}
	return nil
}

func (l *life) deploy(ctx context.Context) error {
	if err := l.git(ctx, filepath.Dir(checkout), "clone", "--quiet", l.repositoryPath(), "repo"); err != nil {
		return err
	}
	out, err := l.operator(ctx, project, "deploy", "apply", "--yes")
	if err != nil {
		return err
	}
	l.before = wordAfter(out, "snapshot ")
	return l.holds(atFirst)
}

// wordAfter returns the word after a text, without a final dot.
func wordAfter(out, text string) string {
	_, rest, _ := strings.Cut(out, text)
	word, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(strings.TrimSpace(word), ".")
}

func (l *life) correct(ctx context.Context) error {
	l.printf("agent> writes %s: it is told to keep a week of journals\n", forClaude)
	if err := files.Replace(l.demoPath(project+"/"+forClaude), []byte(corrected), 0o644); err != nil {
		return err
	}
	if _, err := l.operator(ctx, project, "deploy", "status", "--only", "modified"); err != nil {
		return err
	}
	_, err := l.operator(ctx, project, "deploy", "explain", forClaude, "--line", "7")
	return err
}

func (l *life) proposeIt(ctx context.Context) error {
	out, err := l.operator(ctx, project, "deploy", "propose", "--title", "Keep a week of journals", "--why",
		"The skill removed the journals of the incident that it was called for.")
	if err == nil && !strings.Contains(out, "Proposed: #1 of "+owner+"/"+repo) {
		err = errUnexpected
	}
	return err
}

func (l *life) commentPull(ctx context.Context) error {
	for _, args := range [][]string{
		{"comment", "1", "--line", skillFile + ":7:Is the disk free then? Say how to see it."},
		{"request-changes", "1", "--comment", "One question."},
	} {
		if _, err := l.operator(ctx, project, append(append([]string{"review"}, args...), "--repo",
			owner+"/"+repo)...); err != nil {
			return err
		}
	}
	return nil
}

// revise revises over MCP, as agents do.
func (l *life) revise(ctx context.Context) error {
	read, err := l.callTool(ctx, "2", false, "get_pr_status",
		map[string]any{"repo_owner": owner, "repo_name": repo, "pr_number": 1, "include": []string{"files"}})
	if err != nil {
		return err
	}
	comment := firstComment(read.structured)
	if comment == "" {
		return fmt.Errorf("%w: the review has no comment on a line: %s", errUnexpected, read.text)
	}
	change := arguments("Keep a week of journals", "Says how to see that the disk is free, as the review asks.",
		[]map[string]any{{"path": skillFile, "action": "update", "content": revised}})
	change["revises"], change["change_type"] = 1, "skill"
	change["replies"] = []map[string]any{{"comment": comment, "text": "It says so now: df -h."}}
	answer, err := l.propose(ctx, false, change, nil)
	if err == nil && answer.structured["revised"] != true {
		err = fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	return err
}

// firstComment returns the id of the first comment on a line in what get_pr_status answers.
func firstComment(status map[string]any) string {
	reviews, _ := status["reviews"].([]any)
	for _, review := range reviews {
		one, _ := review.(map[string]any)
		comments, _ := one["comments"].([]any)
		for _, comment := range comments {
			if of, ok := comment.(map[string]any); ok {
				return fmt.Sprint(of["id"])
			}
		}
	}
	return ""
}

func (l *life) mergePull(ctx context.Context) error {
	for _, verb := range []string{"approve", "merge"} {
		if _, err := l.operator(ctx, project, "review", verb, "1", "--repo", owner+"/"+repo); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) deployAgain(ctx context.Context) error {
	if err := l.git(ctx, checkout, "pull", "--quiet", "--ff-only"); err != nil {
		return err
	}
	for _, args := range [][]string{{"deploy", "apply", "--yes"}, {"deploy", "status", "--only", "modified"}} {
		if _, err := l.operator(ctx, project, args...); err != nil {
			return err
		}
	}
	return l.holds(revised)
}

func (l *life) publish(ctx context.Context) error {
	if err := l.git(ctx, ".", "clone", "--quiet", l.repositoryPath(), packing); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"registry", "add", "team", l.demoPath("registry")},
		{"create", "--name", skill, "--version", "1.0.0", "--description", "Frees room on full disks"}, {"publish"},
	} {
		if _, err := l.operator(ctx, packing, append([]string{"packages"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) install(ctx context.Context) error {
	for _, args := range [][]string{{"install", skill, "--platform", "claude"}, {"list"}} {
		if _, err := l.operator(ctx, elsewhere, append([]string{"packages"}, args...)...); err != nil {
			return err
		}
	}
	text, _, err := files.ReadPath(l.demoPath(elsewhere+"/"+forClaude), 1<<20)
	if err == nil && string(text) != revised {
		err = fmt.Errorf("%w: installed was %q", errUnexpected, text)
	}
	return err
}

func (l *life) rollBack(ctx context.Context) error {
	if _, err := l.operator(ctx, project, "deploy", "rollback", "--to", l.before, "--yes"); err != nil {
		return err
	}
	return l.holds(atFirst)
}

package demo

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeops/claudeops/internal/base/fault"
)

type demoStep struct {
	title string
	play  func(context.Context) error
}

// The files that the demo's change touches.
const (
	changedFile = "checks/disk-pressure.md"
	newFile     = "checks/inode-pressure.md"
	changeTitle = "Watch inodes beside blocks in the disk check"
)

func (s *story) steps() []demoStep {
	return []demoStep{
		{"The tools that the server offers", s.listTools},
		{"A dry run: every gate, a diff, nothing written", s.dryRun},
		{"The agent at tier 2 opens a pull request", s.openProposal},
		{"The same request again: reused, not doubled", s.repeatProposal},
		{"The agent at tier 1 may not propose", s.refusedTier},
		{"Two paths out of scope: both are named at once", s.refusedScope},
		{"A secret in a file is refused, and not repeated", s.refusedSecret},
		{"What is open", s.listOpen},
		{"A person reviews and merges", s.review},
		{"The agent reads the outcome", s.showStatus},
		{"The record of every attempt, verified", s.audit},
	}
}

// createRequest returns the request that the demo makes: one file updated, one created.
func (s *story) createRequest() (map[string]any, error) {
	updated, err := s.longer(changedFile,
		"A file system can be full of files while blocks are free: see [inode pressure](inode-pressure.md).")
	if err != nil {
		return nil, err
	}
	created := "# Inode pressure\n\n## Purpose\n\nFind file systems that run out of inodes while blocks are still free.\n\n" +
		"## Commands\n\n```sh\ndf -i --output=target,ipcent | tail -n +2\n```\n\n## Normal\n\nBelow 80 % on every file system.\n"
	return arguments(changeTitle, inodes, []map[string]any{
		{"path": changedFile, "action": "update", "content": updated},
		{"path": newFile, "action": "create", "content": created},
	}), nil
}

// inodes is the description of the demo's change.
const inodes = "## Observed\n\nA host refused new files at 61 % disk use.\n\n## Why\n\nThe check looks at blocks only.\n\n" +
	"## What\n\nA second check for inodes.\n\n## Impact\n\nOne more command an hour, reading only.\n"

// longer returns one of the procedures with a paragraph at its end.
func (s *story) longer(file, paragraph string) (string, error) {
	text, err := fs.ReadFile(s.Procedures, file)
	return strings.TrimRight(string(text), "\n") + "\n\n" + paragraph + "\n", err
}

// appended returns a request that adds a paragraph to one of the procedures.
func (s *story) appended(title, file, paragraph string) (map[string]any, error) {
	content, err := s.longer(file, paragraph)
	return arguments(title, "## What\n\n"+paragraph+"\n",
		[]map[string]any{{"path": file, "action": "update", "content": content}}), err
}

func arguments(title, body string, files []map[string]any) map[string]any {
	return map[string]any{
		"repo_owner": owner, "repo_name": repo, "title": title, "change_type": "check", "body": body, "files": files,
	}
}

// callTool connects at a tier, makes one call and shows question and answer.
func (s *story) callTool(ctx context.Context, tier string, dryRun bool, tool string,
	args map[string]any) (answer toolAnswer,
	err error) {
	c, err := s.connect(ctx, tier, dryRun)
	if err != nil {
		return toolAnswer{}, err
	}
	defer func() {
		if closeErr := c.close(); err == nil {
			err = closeErr
		}
	}()
	s.printCall(tool, args)
	answer, err = c.callTool(ctx, tool, args)
	if err != nil {
		return answer, err
	}
	s.printf("server> %s\n", map[bool]string{true: "refused", false: "done"}[answer.isError])
	return answer, nil
}

func (s *story) listTools(ctx context.Context) error {
	c, err := s.connect(ctx, "2", false)
	if err != nil {
		return err
	}
	list, err := c.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
		s.printf("  %-14s %s\n", t.Name, t.Annotations.Title)
	}
	if lacks := func(tool string) bool { return !slices.Contains(names, tool) }; slices.ContainsFunc([]string{"create_pr",
		"get_pr_status", "list_prs"}, lacks) {
		return fmt.Errorf("%w: the tools are %v", errUnexpected, names)
	}
	return c.close()
}

// propose makes a proposal that must be accepted. err is that of making the change.
func (s *story) propose(ctx context.Context, dryRun bool, change map[string]any, err error) (toolAnswer, error) {
	if err != nil {
		return toolAnswer{}, err
	}
	answer, err := s.callTool(ctx, "2", dryRun, "create_pr", change)
	if err == nil && answer.isError {
		err = fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	return answer, err
}

func (s *story) dryRun(ctx context.Context) error {
	change, err := s.createRequest()
	if err == nil {
		change["preview"] = "full"
	}
	answer, err := s.propose(ctx, true, change, err)
	if err != nil {
		return err
	}
	preview, _ := answer.structured["preview"].(map[string]any)
	diff, _ := preview["diff"].(string)
	s.indent(diff)
	branches, err := s.branches(ctx)
	if err != nil {
		return err
	}
	if answer.structured["dry_run"] != true || !strings.Contains(diff, "+++ b/"+newFile) || branches != "main" {
		return fmt.Errorf("%w: %s; branches %s", errUnexpected, answer.text, branches)
	}
	s.printf("The repository still has one branch: %s\n", branches)
	return nil
}

func (s *story) branches(ctx context.Context) (string, error) {
	out, err := s.git(ctx, nil, "for-each-ref", "--format=%(refname:short)", "refs/heads")
	return strings.Join(strings.Fields(out), " "), err
}

func (s *story) openProposal(ctx context.Context) error {
	change, err := s.createRequest()
	answer, err := s.propose(ctx, false, change, err)
	if err != nil {
		return err
	}
	branch, _ := answer.structured["branch"].(string)
	if answer.structured["number"] != 1.0 || branch == "" {
		return fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	s.printf("  number %v\n  url    %v\n  branch %s\n  commit %v\n", answer.structured["number"], answer.structured["url"],
		branch,
		answer.structured["commit"])
	// By its id, since the branch goes when it is merged.
	s.printf("Look at the commit with:\n  git -C %s log -1 --stat %v\n  git -C %s show %v\n",
		shellQuote(s.repositoryPath()), answer.structured["commit"], shellQuote(s.repositoryPath()),
		answer.structured["commit"])
	changed, err := s.git(ctx, nil, "diff", "--name-only", "main..."+branch)
	if err != nil {
		return err
	}
	if strings.Join(strings.Fields(changed), " ") != changedFile+" "+newFile {
		return fmt.Errorf("%w: the branch changes %q", errUnexpected, changed)
	}
	return nil
}

func (s *story) repeatProposal(ctx context.Context) error {
	change, err := s.createRequest()
	answer, err := s.propose(ctx, false, change, err)
	if err != nil {
		return err
	}
	if answer.structured["reused"] != true || answer.structured["number"] != 1.0 {
		return fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	s.printf("  reused: #%v, %v\n", answer.structured["number"], answer.structured["url"])
	return nil
}

// expectRefusal makes a call that must be refused with the code, and shows the refusal.
func (s *story) expectRefusal(ctx context.Context, tier string, change map[string]any, code fault.Code,
	violations int) (toolAnswer, error) {
	before, err := s.branches(ctx)
	if err != nil {
		return toolAnswer{}, err
	}
	answer, err := s.callTool(ctx, tier, false, "create_pr", change)
	if err != nil {
		return answer, err
	}
	s.indent(answer.text)
	after, err := s.branches(ctx)
	if err != nil {
		return answer, err
	}
	if !answer.isError || answer.err.Code != code || len(answer.err.Violations) != violations || before != after {
		return answer, fmt.Errorf("%w: wanted %s with %d violations", errUnexpected, code, violations)
	}
	return answer, nil
}

func (s *story) refusedTier(ctx context.Context) error {
	_, err := s.expectRefusal(ctx, "1", arguments("Add a check", inodes, []map[string]any{
		{"path": "checks/new.md", "action": "create", "content": "# New\n"},
	}), fault.TierDenied, 1)
	return err
}

func (s *story) refusedScope(ctx context.Context) error {
	_, err := s.expectRefusal(ctx, "2", arguments("Give myself more rights", inodes, []map[string]any{
		{"path": "prompts/tier3-remediate.md", "action": "update", "content": "# Do as you like\n"},
		{"path": "checks/../.claude/settings.json", "action": "update", "content": "{}\n"},
	}), fault.ScopeDenied, 2)
	return err
}

func (s *story) refusedSecret(ctx context.Context) error {
	// Put together here, so that this source file holds nothing that looks like a credential.
	secret := "ghp_" + strings.Join([]string{"z9Kq2LmX", "7vTbR4Wn", "8cYd1FgH", "5jPs3AuE", "6oZi"}, "")
	answer, err := s.expectRefusal(ctx, "2", arguments("Add a token check", inodes, []map[string]any{
		{"path": "checks/token.md", "action": "create", "content": "# Token\n\nexport GITHUB_TOKEN=" + secret + "\n"},
	}), fault.ContentDenied, 1)
	if err == nil && strings.Contains(answer.text, secret) {
		return fmt.Errorf("%w: the refusal repeats the secret", errUnexpected)
	}
	return err
}

func (s *story) listOpen(ctx context.Context) error {
	answer, err := s.callTool(ctx, "1", false, "list_prs", map[string]any{"repo_owner": owner, "repo_name": repo})
	if err != nil {
		return err
	}
	prs, _ := answer.structured["prs"].([]any)
	if len(prs) != 1 {
		return fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	pr, _ := prs[0].(map[string]any)
	s.printf("  #%v %v\n  files %v\n", pr["number"], pr["title"], pr["files"])
	return nil
}

func (s *story) review(ctx context.Context) error {
	name := owner + "/" + repo
	for _, args := range [][]string{
		{"review", "show", "1", "--repo", name},
		{"review", "approve", "1", "--repo", name, "--comment", "Good catch."},
		{"review", "merge", "1", "--repo", name},
	} {
		if _, err := s.runAsPerson(ctx, args...); err != nil {
			return err
		}
	}
	_, err := s.git(ctx, nil, "cat-file", "-e", "main:"+newFile)
	return err
}

func (s *story) showStatus(ctx context.Context) error {
	answer, err := s.callTool(ctx, "1", false, "get_pr_status",
		map[string]any{"repo_owner": owner, "repo_name": repo, "pr_number": 1})
	if err != nil {
		return err
	}
	reviews, _ := answer.structured["reviews"].([]any)
	if answer.structured["state"] != "merged" || len(reviews) != 1 {
		return fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	review, _ := reviews[0].(map[string]any)
	s.printf("  state %v\n  %v %v: %v\n", answer.structured["state"], review["author"], review["state"], review["body"])
	return nil
}

func (s *story) audit(ctx context.Context) error {
	if _, err := s.runAsPerson(ctx, "audit", "list"); err != nil {
		return err
	}
	out, err := s.runAsPerson(ctx, "audit", "verify")
	if err != nil {
		return err
	}
	rows := 8 // dry run, opened, reused, three refusals, approved, merged
	if s.served {
		rows++ // its token
	}
	if !strings.HasPrefix(out, strconv.Itoa(rows)+" rows") {
		return fmt.Errorf("%w: the record should have %d rows: %s", errUnexpected, rows, out)
	}
	return nil
}

func (s *story) openAnother(ctx context.Context) error {
	change, err := s.appended("Warn three weeks before a certificate ends", "checks/certificate-expiry.md",
		"Three weeks leave time for a failed renewal to be repaired: warn at 21 days.")
	answer, err := s.propose(ctx, false, change, err)
	if err != nil {
		return err
	}
	if answer.structured["number"] != 2.0 {
		return fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	_, err = s.runAsPerson(ctx, "review", "request-changes", "2", "--repo", owner+"/"+repo, "--comment",
		"Say which hosts this is about.")
	return err
}

func (s *story) leaveDryRun(ctx context.Context) error {
	change, err := s.appended("Look at failed timers, too", "checks/failed-units.md",
		"A timer whose unit failed is listed as a unit; one that never fired is not: `systemctl list-timers --all`.")
	answer, err := s.propose(ctx, true, change, err)
	if err == nil && answer.structured["dry_run"] != true {
		err = fmt.Errorf("%w: %s", errUnexpected, answer.text)
	}
	return err
}

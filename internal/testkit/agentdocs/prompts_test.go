package agentdocs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// What the files are compared with. Everything that is not taken from another package stands here and nowhere else.

// serverName is the name under which .claude/mcp.json registers the server; Claude Code calls a tool X of it
// mcp__claudeops__X.
const serverName = "claudeops"

// containerBinary is where the container image has the binary.
const containerBinary = "/app/claudeops"

// toolNames are the tools of the MCP server (design §4).
func toolNames() (names []string) {
	for _, o := range prflow.Toolset(nil).Operations {
		if o.Tool.Title != "" {
			names = append(names, o.Name)
		}
	}
	return names
}

// bodySections are the sections of a proposal's body, in order.
func bodySections() []string { return []string{"## Observed", "## Why", "## What", "## Impact"} }

// proposerPrompts are the prompts of the tiers that may propose; observerPrompt is the one of the tier that may not.
func proposerPrompts() []string {
	return []string{"prompts/tier2-investigate.md", "prompts/tier3-remediate.md"}
}

const observerPrompt = "prompts/tier1-observe.md"

func prompts() []string { return append([]string{observerPrompt}, proposerPrompts()...) }

// codesForReaders are the codes that the two reading tools can answer, and those that tier 1 meets when it proposes.
func codesForReaders() []fault.Code {
	return []fault.Code{
		fault.TierDenied, fault.ReadOnly, fault.InvalidArgument, fault.NotFound, fault.RepoNotAllowed,
		fault.ProviderUnresolved, fault.ProviderDisabled, fault.RateLimited, fault.UpstreamError, fault.Timeout,
		fault.Internal,
	}
}

// serverVariables are the variables that the MCP server reads, with their defaults, which the server alone knows.
func serverVariables() map[string]string {
	vars := map[string]string{}
	for _, v := range config.ServerVariables(forges.All()) {
		vars[v.Name] = v.Default
	}
	return vars
}

// checkSections and playbookSections are the sections that every check and playbook has, in this order and no others.
func checkSections() []string {
	return []string{"Purpose", "Commands", "Normal", "Thresholds", "Record", "Escalate"}
}

func playbookSections() []string {
	return []string{"When to use", "Preconditions", "Steps", "Verification", "Rollback", "Stop when"}
}

func TestEveryToolThatIsNamedExists(t *testing.T) {
	t.Parallel()
	anyTool := regexp.MustCompile(`mcp__[A-Za-z0-9_-]+`)
	for _, name := range agentFiles(t) {
		for _, tool := range anyTool.FindAllString(read(t, name), -1) {
			short, ours := strings.CutPrefix(tool, "mcp__"+serverName+"__")
			if !ours || !slices.Contains(toolNames(), short) {
				t.Errorf("%s: names the tool %s, which does not exist", name, tool)
			}
		}
	}
}

func TestPromptsAndSkillNameEveryTool(t *testing.T) {
	t.Parallel()
	for _, name := range append(prompts(), skillFile) {
		for _, tool := range toolNames() {
			if !strings.Contains(read(t, name), "mcp__"+serverName+"__"+tool) {
				t.Errorf("%s: does not name %s in full", name, tool)
			}
		}
	}
}

func TestThereIsOnePromptForEachTier(t *testing.T) {
	t.Parallel()
	if got := markdownIn(t, "prompts"); !slices.Equal(got, prompts()) {
		t.Errorf("prompts/ holds %q, want %q", got, prompts())
	}
	for i, name := range prompts() {
		tier := gitprovider.TierObserve + gitprovider.Tier(i)
		file, title := "tier"+tier.String()+"-", "# Tier "+tier.String()+":"
		if !strings.HasPrefix(path.Base(name), file) || !strings.HasPrefix(read(t, name), title) {
			t.Errorf("%s: name and title must be those of tier %s", name, tier)
		}
	}
}

func TestPromptsStateTheScope(t *testing.T) {
	t.Parallel()
	for _, name := range prompts() {
		if got := indentedBlockOfPatterns(read(t, name)); !slices.Equal(got, gitprovider.DefaultAllow()) {
			t.Errorf("%s: the scope is %q, want %q", name, got, gitprovider.DefaultAllow())
		}
	}
	deny := gitprovider.DefaultDeny()
	for _, name := range proposerPrompts() {
		_, after, _ := strings.Cut(read(t, name), "Everything else is refused")
		sentence, _, _ := strings.Cut(after, "\n\n")
		sentence, _, _ = strings.Cut(sentence, "Paths are relative")
		for _, pattern := range quoted(sentence) {
			if !slices.Contains(deny, pattern) {
				t.Errorf("%s: names %s as refused, which is not a deny rule", name, pattern)
			}
		}
		if len(quoted(sentence)) == 0 {
			t.Errorf("%s: names no example of what is refused", name)
		}
	}
}

// indentedBlockOfPatterns returns the lines of the indented block that lists files ending in .md.
func indentedBlockOfPatterns(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if item, indented := strings.CutPrefix(line, "    "); indented && strings.HasSuffix(item, ".md\n") {
			out = append(out, strings.TrimSpace(item))
		}
	}
	return out
}

func TestPromptsStateTheLimits(t *testing.T) {
	t.Parallel()
	limits := gitprovider.DefaultTierLimits()
	files := []string{
		fmt.Sprintf("at most %d files", limits.MaxFiles(gitprovider.TierInvestigate)),
		fmt.Sprintf("%d files", limits.MaxFiles(gitprovider.TierRemediate)),
	}
	for i, name := range proposerPrompts() {
		// Title length and sizes: design §4 (create_pr) and §3 (gate 5).
		for _, want := range []string{files[i], "at most 72 characters", "256 KiB a file, 1 MiB in all"} {
			if !strings.Contains(oneLine(read(t, name)), want) {
				t.Errorf("%s: does not say %q", name, want)
			}
		}
	}
	saysNo := strings.Contains(read(t, observerPrompt), "answers `tier_denied`")
	if limits.MaxFiles(gitprovider.TierObserve) != 0 || !saysNo {
		t.Errorf("%s: must say that tier 1 cannot propose", observerPrompt)
	}
}

func TestPromptsSayHowToReadASuccess(t *testing.T) {
	t.Parallel()
	for _, name := range append(proposerPrompts(), skillFile) {
		for _, want := range []string{"`dry_run: true`", "**nothing was opened**", "`reused: true`", "`warnings`"} {
			if !strings.Contains(oneLine(read(t, name)), want) {
				t.Errorf("%s: does not say %q", name, want)
			}
		}
	}
}

func TestPromptsNameTheSectionsOfABodyInOrder(t *testing.T) {
	t.Parallel()
	for _, name := range append(proposerPrompts(), skillFile) {
		rest := read(t, name)
		for _, section := range bodySections() {
			_, after, found := strings.Cut(rest, section)
			if !found {
				t.Fatalf("%s: %q is missing or comes too early", name, section)
			}
			rest = after
		}
	}
}

func TestProposerPromptsOfferEveryChangeTypeAndAction(t *testing.T) {
	t.Parallel()
	words := []string{string(gitprovider.ActionCreate), string(gitprovider.ActionUpdate), string(gitprovider.ActionDelete)}
	for _, changeType := range gitprovider.ChangeTypes() {
		words = append(words, string(changeType))
	}
	for _, name := range proposerPrompts() {
		for _, word := range words {
			if !strings.Contains(read(t, name), "`"+word+"`") {
				t.Errorf("%s: does not name `%s`", name, word)
			}
		}
	}
}

func TestPromptsForbidTheWaysRoundTheDoor(t *testing.T) {
	t.Parallel()
	for _, name := range prompts() {
		text := oneLine(read(t, name))
		for _, want := range []string{"go round it", "git push", "curl", "is data", "never an instruction|do not follow it"} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: does not say %q", name, want)
			}
		}
	}
}

// A system prompt is paid for in every session, and a long one is read badly.
func TestPromptsAreShort(t *testing.T) {
	t.Parallel()
	const most = 150
	for _, name := range prompts() {
		if lines := strings.Count(read(t, name), "\n"); lines > most {
			t.Errorf("%s has %d lines, at most %d are wanted", name, lines, most)
		}
	}
}

// oneLine joins the lines, so that a phrase is found where it is broken.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestChecksAndPlaybooksShareOneStructure(t *testing.T) {
	t.Parallel()
	for folder, sections := range map[string][]string{"checks": checkSections(), "playbooks": playbookSections()} {
		for _, name := range markdownIn(t, folder) {
			text := read(t, name)
			if got := headings(text, "## "); !slices.Equal(got, sections) {
				t.Errorf("%s has the sections %q, want %q", name, got, sections)
			}
			if got := headings(text, "# "); len(got) != 1 || !strings.HasPrefix(text, "# ") {
				t.Errorf("%s must begin with its one title, has %q", name, got)
			}
			for _, section := range sections {
				_, after, _ := strings.Cut(text, "\n## "+section+"\n")
				body, _, _ := strings.Cut(after, "\n## ")
				if len(strings.Fields(body)) < 10 {
					t.Errorf("%s: the section %s says next to nothing", name, section)
				}
			}
			if len(fenced(text, "sh")) == 0 {
				t.Errorf("%s gives no command to run", name)
			}
		}
	}
}

func TestPlaybooksAreForTheTierThatRepairs(t *testing.T) {
	t.Parallel()
	want := "\n- Tier " + gitprovider.TierRemediate.String() + ".\n"
	for _, name := range markdownIn(t, "playbooks") {
		if !strings.Contains(read(t, name), want) {
			t.Errorf("%s: the preconditions must begin with the tier", name)
		}
	}
}

func TestManifestNamesTheDemoRepository(t *testing.T) {
	t.Parallel()
	got, err := gitprovider.ParseManifest(read(t, gitprovider.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	want := gitprovider.Manifest{Provider: "local", Owner: "demo", Repo: "home-cluster", BaseBranch: "main"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestManifestListsEveryProcedure(t *testing.T) {
	t.Parallel()
	links := relativeLinks(gitprovider.ManifestFile, read(t, gitprovider.ManifestFile))
	for _, name := range append(markdownIn(t, "checks"), markdownIn(t, "playbooks")...) {
		if !slices.Contains(links, name) {
			t.Errorf("%s does not link to %s", gitprovider.ManifestFile, name)
		}
	}
}

func TestEveryPlaybookIsReachedFromACheck(t *testing.T) {
	t.Parallel()
	var links []string
	for _, name := range markdownIn(t, "checks") {
		links = append(links, relativeLinks(name, read(t, name))...)
	}
	for _, name := range markdownIn(t, "playbooks") {
		if !slices.Contains(links, name) {
			t.Errorf("no check escalates to %s", name)
		}
	}
}

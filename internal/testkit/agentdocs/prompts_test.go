package agentdocs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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

package agentdocs

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

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

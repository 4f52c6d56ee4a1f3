package cli

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/web/api"
)

func TestThePageOfOperationsIsMadeFromThem(t *testing.T) {
	t.Parallel()
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "tools.md"),
		operationtest.Docs(append(new(app.App).Toolsets(), api.Toolset(api.Options{}),
			operation.Toolset{Operations: app.Acts(nil)})))
}

// nicerFlags are the flags of commands written by hand that stand for a field of the input under another name. An empty
// one is an argument without a flag.
func nicerFlags() map[string]string {
	return map[string]string{
		"repo_owner": "repo", "repo_name": "repo", "base_branch": "base", "change_type": "type", "files": "create",
		"pr_number":            "",
		"read_file.repo_owner": "", "read_file.repo_name": "", "read_file.path": "",
		"list_files.repo_owner": "", "list_files.repo_name": "", "list_files.glob": "",
		"list_prs.limit": "", "list_prs.after": "", // it reads all pages
		"promote_proposal.id": "",
	}
}

func TestEveryOperationHasItsCommandWithEveryField(t *testing.T) {
	t.Parallel()
	a := &commandLine{}
	root := a.rootCommand()
	for _, o := range operation.List(a.program().Toolsets()...) {
		if o.Command == "" {
			continue
		}
		words := strings.Fields(o.Command)
		cmd, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 || cmd.Name() != words[len(words)-1] {
			t.Errorf("%s: there is no command %q", o.Name, o.Command)
			continue
		}
		for _, f := range operation.Fields(o.Input) {
			nicer, has := nicerFlags()[o.Name+"."+f.JSON]
			if !has {
				nicer, has = nicerFlags()[f.JSON]
			}
			listed := cmd.Flags().Lookup(strings.ReplaceAll(f.JSON, "_", "-")) != nil ||
				has && (nicer == "" || cmd.Flags().Lookup(nicer) != nil)
			if !listed && (scalar(f.Type) || has) {
				t.Errorf("%s: no flag for the field %s of %s", o.Command, f.JSON, o.Name)
			}
		}
	}
}

func scalar(t reflect.Type) bool {
	return slices.Contains([]reflect.Kind{reflect.String, reflect.Int, reflect.Bool}, t.Kind())
}

package packages

import (
	"path/filepath"
	"testing"
)

// Arguments that the contract types as "or None" may be null, which is the same as leaving them out.
func TestNullIsTheSameAsNothingWhereTheContractHasIt(t *testing.T) {
	b := newBench(t)
	if err := worldIn(filepath.Dir(b.settings.Project)).publishOne("pdf", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	b.put("skills/mine/SKILL.md", "---\nname: mine\ndescription: Mine\n---\n")
	b.same("search", `{"query":"pdf","package_type":null}`, map[string]any{"result.0.name": "pdf"})
	b.same("info", `{"package_name":"pdf","version":null}`, map[string]any{"version": "1.0.0"})
	b.same("config_get", `{"key":null}`, map[string]any{"key": nil, "source": "merged"})
	b.same("create_package", `{"name":null,"version":null,"description":null,"artifact_types":null}`, map[string]any{
		"package_name": "project", "version": "0.1.0", "total_artifacts": 1.0,
	})
	b.same("publish", `{"registry":null}`, map[string]any{"package_name": "project", "registry": "dev"})
	b.same("install", `{"packages":["pdf"],"platform":null}`, map[string]any{"installed.0.name": "pdf"})
	for tool, arguments := range map[string]string{
		"search": `{"query":null}`, "install": `{"packages":null}`, "info": `{"package_name":null}`,
		"publish":  `{"tag":null}`,
		"validate": `{"path":null}`, "create_package": `{"path":null}`, "registry_add": `{"name":"x","url":null}`,
		"config_set": `{"key":"default_platform","value":null}`,
	} {
		b.fails(tool, arguments, InvalidArgument, "must not be null")
	}
}

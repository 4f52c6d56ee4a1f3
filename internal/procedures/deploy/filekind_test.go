package deploy

import (
	"strings"
	"testing"
)

func TestOnlyASoundConfigurationMayBeProposed(t *testing.T) {
	t.Parallel()
	const sound = "version: 1\nprofiles:\n  default: {}\nmodules:\n  - {id: 'skill:disk', type: skill, source: " +
		"{local_path: {path: modules/disk}}}\n"
	for name, c := range map[string]struct {
		path, content, says string
		line                int
	}{
		"sound":          {configName, sound, "", 0},
		"a module":       {"modules/disk/steps.md", "anything", "", 0},
		"a skill":        {"modules/disk/SKILL.md", "---\nname: disk\ndescription: Disks\n---\n", "", 0},
		"a broken skill": {"modules/disk/SKILL.md", "anything", "no front matter", 0},
		"no YAML":        {configName, "version: 1\n\tb", "agentpack.yaml", 2},
		"a version":      {configName, strings.Replace(sound, "1", "7", 1), "version 7", 0},
		"no profile":     {configName, "version: 1\n", "default", 0},
		"a wrong target": {configName, sound + "targets: {emacs: {}}\n", "emacs", 0},
	} {
		problems := FileKind().Validate(c.path, c.content)
		switch {
		case c.says == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case c.says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, c.says) ||
			problems[0].Line != c.line):
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

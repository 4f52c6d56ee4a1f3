package strictyaml

import (
	"errors"
	"strings"
	"testing"
)

type settings struct {
	Name  string         `yaml:"name"`
	Count int            `yaml:"count"`
	Inner map[string]int `yaml:"inner"`
}

func TestATextIsReadOrSaysWhatIsWrongInItsOwnWords(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		o     Options
		empty bool
		wrong []string // parts of the problems, in their order
	}{
		"good":                     {text: "name: a\ncount: 2\ninner: {x: 1}\n"},
		"json":                     {text: `{"name":"a","count":2}`},
		"nothing":                  {text: "", empty: true},
		"comments":                 {text: "# none\n\n", empty: true},
		"an unknown key":           {text: "nam: a\n", wrong: []string{"line 1: unknown key nam"}},
		"an unknown key, left out": {text: "nam: a\n", o: Options{Unknown: true}},
		"two problems": {text: "count: many\ninner: []\n",
			wrong: []string{"line 1: wrong type str `many`", "line 2: wrong type seq"}},
		"a key twice":            {text: "name: a\nname: b\n", wrong: []string{`key "name" is there already, at line 1`}},
		"two documents":          {text: "name: a\n---\nname: b\n", wrong: []string{"more than one YAML document"}},
		"two, one left out":      {text: "name: a\n---\nname: b\n", o: Options{More: true}},
		"something broken after": {text: "name: a\n---\n\t- x\n", wrong: []string{"line 3: found character"}},
		"no YAML":                {text: "name: [a\n", wrong: []string{"line "}},
		"a list":                 {text: "- a\n", wrong: []string{"wrong type seq"}},
		"aliases that multiply": {text: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c " +
			"[*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: " +
			"[*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", wrong: []string{"excessive aliasing"}},
	} {
		t.Run(name, func(t *testing.T) {
			var into settings
			var target any = &into
			if strings.HasPrefix(name, "aliases") {
				target = &map[string]any{}
			}
			empty, err := Decode([]byte(c.text), target, c.o)
			var problems *Error
			if empty != c.empty || errors.As(err, &problems) != (c.wrong != nil) {
				t.Fatalf("empty %t, %v", empty, err)
			}
			if problems == nil {
				return
			}
			if len(problems.Problems) != len(c.wrong) || strings.ContainsAny(err.Error(), "\n!") ||
				strings.Contains(err.Error(), "strictyaml") {
				t.Errorf("%q", problems.Problems)
			}
			for i, want := range c.wrong {
				if !strings.Contains(problems.Problems[i], want) {
					t.Errorf("%q lacks %q", problems.Problems[i], want)
				}
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("name: a\ncount: 2\n")
	f.Add("a: &a [*a]")
	f.Add("? [x]\n: y\n--- \n%")
	f.Fuzz(func(t *testing.T, text string) {
		var into settings
		if _, err := Decode([]byte(text), &into, Options{}); err != nil && strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%q", err)
		}
	})
}

func TestFrontMatterIsReadByOneReader(t *testing.T) {
	for name, c := range map[string]struct {
		text, about string // description
		problem     string
		none        bool
	}{
		"YAML":                   {text: "---\nname: a\ndescription: Look at disks\n---\nBody\n", about: "Look at disks"},
		"Windows and a mark":     {text: "\ufeff---\r\ndescription: Look\r\n---\r\nBody\r\n", about: "Look"},
		"spaces after hyphens":   {text: "--- \ndescription: Look\n---\t\nBody\n", about: "Look"},
		"a colon in a text":      {text: "---\nname: a\ndescription: Use when: x\n---\n", about: "Use when: x", problem: "line 3: "},
		"a text that goes on":    {text: "---\ndescription: Use when: x\n  or y\n---\n", about: "Use when: x or y", problem: "line "},
		"nothing that is a key":  {text: "---\n- a: b: c\n---\n", problem: "line 2: "},
		"no header":              {text: "# Title\n", none: true},
		"a header that goes on":  {text: "---\nname: a\n", none: true},
		"a rule further down":    {text: "# Title\n---\nname: a\n---\n", none: true},
		"a description of lists": {text: "---\ndescription: [a]\n---\n"},
	} {
		f, ok := CutFrontMatter(c.text)
		if ok == c.none {
			t.Errorf("%s: %+v, %v", name, f, ok)
			continue
		}
		fields, problem := f.Fields()
		if ok && (Text(fields, "description") != c.about || !strings.Contains(problem, c.problem) ||
			(problem == "") != (c.problem == "")) {
			t.Errorf("%s: %v, %q", name, fields, problem)
		}
	}
}

func TestWhatKeepsASkillFromBeingUsed(t *testing.T) {
	for text, c := range map[string]struct {
		says  string
		fatal bool
	}{
		"---\nname: a\ndescription: b\n---\n":           {"", false},
		"---\nname: a\ndescription: Use when: x\n---\n": {"line 3: ", false},
		"---\nname: a\n---\n":                           {"no description", true},
		"# A\n":                                         {"no front matter", true},
	} {
		problems, fatal := SkillProblems(text)
		if said := strings.Join(problems, "; "); fatal != c.fatal || !strings.Contains(said, c.says) ||
			(said == "") != (c.says == "") {
			t.Errorf("%q: %q, %v", text, said, fatal)
		}
	}
}

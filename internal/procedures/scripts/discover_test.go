package scripts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func settings(t testing.TB, dir, text string) Settings {
	t.Helper()
	s, err := ParseSettings([]byte(text), dir)
	must.Do(t, err)
	return s
}

// discoverAll is discover without files that are known.
func discoverAll(s Settings) (found []Script, skipped []Skipped) {
	return discover(s, map[string]cachedFile{})
}

func names(found []Script) []string {
	out := []string{}
	for _, s := range found {
		out = append(out, s.Name+" "+string(s.Interpreter))
	}
	return out
}

func whys(skipped []Skipped) string {
	out := ""
	for _, s := range skipped {
		out += filepath.Base(s.Path) + " " + s.Why + "\n"
	}
	return out
}

func TestDiscoverFindsScriptsOfEveryKind(t *testing.T) {
	dir := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{
		"scripts/Agent/Git-Search.ps1": "param($a)", "scripts/Agent/check disk.sh": "#!/bin/sh\n",
		"scripts/Agent/bashed":    "#! /usr/bin/env -S bash -e\n",
		"scripts/Agent/report.py": "#!/usr/bin/env python3\r\n", "scripts/Agent/page.mjs": "#!/usr/bin/node\n",
		"scripts/Agent/notes.md":    "# no script\n",
		"scripts/Agent/Common.psm1": "", "scripts/Agent/below/Deep.ps1": "", "build.ps1": "", "test.ps1": "", "other.ps1": "",
		"tools/extra.sh": "#!/bin/sh\n",
	})
	found, skipped := discoverAll(settings(t, dir, "extra_tools: {More: tools/extra.sh}"))
	want := []string{"bashed bash", "build pwsh", "check_disk sh", "git_search pwsh", "more sh", "page node",
		"report python3", "test pwsh"}
	if diff := cmp.Diff(want, names(found)); diff != "" || len(skipped) > 0 {
		t.Errorf("%s(-want +got):\n%s", whys(skipped), diff)
	}
	if found, skipped := discoverAll(DefaultSettings(t.TempDir())); len(found)+len(skipped) > 0 {
		t.Errorf("of nothing: %v, %v", found, skipped)
	}
}

func TestDiscoverSaysWhatItLeavesOut(t *testing.T) {
	outside := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{"evil.ps1": "param($a)"})
	dir := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{
		"scripts/Agent/open.sh": "#!/bin/sh\n", "scripts/Agent/same-name.sh": "#!/bin/sh\n",
		"scripts/Agent/same_name.ps1":                         "",
		"scripts/Agent/" + strings.Repeat("long", 20) + ".sh": "#!/bin/sh\n", "scripts/Agent/---.sh": "#!/bin/sh\n",
		"scripts/Agent/big.ps1": strings.Repeat("#", maxScriptBytes+1),
		"plain.txt":             "words", "scripts/Agent/perl.pl": "#!/usr/bin/perl\n",
		"scripts/Agent/zsh": "#!/usr/bin/env -S X=1 zsh -e\n", "scripts/Agent/odd": "#!\n",
		"scripts/Agent/wide.sh":   "\xff\xfe#\x00!\x00/\x00b\x00i\x00n\x00/\x00s\x00h\x00\n\x00",
		"scripts/Agent/marked.sh": "\ufeff#!/bin/sh\n", "scripts/Agent/marked.py": "\ufeff#!/usr/bin/python3\n",
		"scripts/Agent/ruby.rb": "#!/usr/bin/ruby\n", "scripts/Agent/README.md": "# words\n",
		"scripts/Agent/a.py": "print(1)\n", "scripts/Agent/b.js": "1\n", "scripts/Agent/c.sh": "ls\n",
	})
	agent := filepath.Join(dir, "scripts", "Agent")
	must.Do(t, os.Chmod(filepath.Join(agent, "open.sh"), 0o757))
	must.Do(t, os.Symlink(filepath.Join(outside, "evil.ps1"), filepath.Join(agent, "evil.ps1")))
	must.Do(t, os.Symlink("same-name.sh", filepath.Join(agent, "link.sh")))
	for link, to := range map[string]string{"notes": filepath.Join(outside, "evil.ps1"), "dangling": "nowhere"} {
		must.Do(t, os.Symlink(to, filepath.Join(agent, link)))
	}
	found, skipped := discoverAll(settings(t, dir, "{extra_tools: {gone: nowhere.sh, words: plain.txt}, deny: [ruby]}"))
	operationtest.Same(t, "scripts", []string{"link sh", "marked python3", "same_name sh"}, names(found))
	got := whys(skipped)
	for _, want := range []string{
		"open.sh can be written by every user", "evil.ps1 is a link that leads out",
		"same_name.ps1 would be a second tool named same_name", "long.sh has a name that makes no tool's name",
		"---.sh has a name", "big.ps1 is larger than", "nowhere.sh ", "plain.txt has no first line",
		"perl.pl is for perl; scripts of PowerShell", "zsh is for zsh", "odd is for an unknown program",
		"wide.sh begins with the byte order mark of UTF-16",
		"marked.sh begins with the byte order mark of UTF-8", "notes is a link that leads out",
		"dangling is a link to a file that does not exist", "a.py has no first line such as #!/bin/sh",
		"b.js has no first line such as #!/bin/sh", "c.sh has no first line such as #!/bin/sh",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q:\n%s", want, got)
		}
	}
	for _, not := range []string{"ruby.rb", "README.md"} {
		if strings.Contains(got, not) {
			t.Errorf("%s is not a script that was asked for:\n%s", not, got)
		}
	}
}

func TestDocstringsDescribeAndMetadataDoesNot(t *testing.T) {
	const python, node = "#!/usr/bin/env python3\n", "#!/usr/bin/node\n"
	const metadata = "# /// script\n# dependencies = [\"x\"]\n# ///\n"
	disks := Description{Synopsis: "Report disks.", Details: "Twice a day."}
	for text, want := range map[string]Description{
		python + metadata + "\"\"\"Report disks.\n\nTwice a day.\n\"\"\"\nimport x\n": disks,
		node + "/**\n * Report disks.\n * Twice a day.\n */\n":                        disks,
		python + "# Of comments.\n'''Not this.'''\n":                                  {Synopsis: "Of comments."},
		python + "x = 1\n\"\"\"Not at the beginning.\"\"\"\n":                         {},
	} {
		got := ParseHeader(text)
		if got.Synopsis != want.Synopsis || got.Details != want.Details {
			t.Errorf("%q: %q, %q", text, got.Synopsis, got.Details)
		}
	}
}

func TestEveryParameterHasAType(t *testing.T) {
	schema := parsePowerShell("param($a, $b = 5, [object[]]$c, [uri]$d)").Schema()
	for name, p := range schema["properties"].(map[string]any) {
		of := p.(map[string]any)
		if items, is := of["items"].(map[string]any); of["type"] == nil || is && items["type"] == nil {
			t.Errorf("%s: %v", name, of)
		}
	}
}

func TestSettingsChooseScripts(t *testing.T) {
	dir := operationtest.WriteExecutables(t, t.TempDir(),
		map[string]string{"s/Git-Search.ps1": "", "s/Read-File.ps1": "", "s/clean.sh": "#!/bin/sh\n"})
	for text, want := range map[string]string{
		"": "clean git_search read_file", "deny: [gitsearch]": "clean read_file",
		"allow: [Git-Search.ps1, READ_FILE]":                 "git_search read_file",
		"tools: {allow: [clean, git_search], deny: [CLEAN]}": "git_search", `{"allow": ["clean"]}`: "clean",
	} {
		s := settings(t, dir, text)
		s.Folder = "s"
		found, _ := discoverAll(s)
		got := []string{}
		for _, f := range found {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	s := settings(t, "/w", `
agent_scripts_dir: ops
working_dir: sub
write: [out, /srv/x/../y, ~/cache, "~"]
timeout_seconds: 5
output_cap_bytes: 0
scripts: {Git-Search: {read_only: true, timeout_seconds: 9}, clean: {tier: 3, output_cap_bytes: 10}}
`)
	if want := []string{"/w/sub/out", "/srv/y", "~/cache", "~"}; !slices.Equal(s.Write, want) ||
		s.Boundary != BoundaryAuto {
		t.Errorf("%v, %q", s.Write, s.Boundary)
	}
	if s.Folder != "ops" || s.WorkingDir != "/w/sub" || s.Timeout.Seconds() != 5 || s.OutputCap != defaultOutputCap {
		t.Errorf("%+v", s)
	}
	if o := s.forScript("git_search"); o.Tier != 1 || !o.ReadOnly || o.Timeout.Seconds() != 9 ||
		o.OutputCap != defaultOutputCap {
		t.Errorf("%+v", o)
	}
	if o := s.forScript("clean"); o.Tier != 3 || o.Timeout.Seconds() != 5 || o.OutputCap != 10 {
		t.Errorf("%+v", o)
	}
	if o := s.forScript("other"); o.Tier != defaultTier || o.ReadOnly {
		t.Errorf("%+v", o)
	}
	for text, want := range map[string]string{
		"timeout: 5": "unknown key timeout", "at_once: 2\n---\nat_once: 3\n": "more than one YAML document",
		"timeout_seconds: -1": "timeout_seconds must be", "output_cap_bytes: 999999999": "output_cap_bytes must be",
		"at_once: 100": "at_once must be", "boundary: user": "boundary must be none or landlock",
		"scripts: {a: {tier: 1}}": "scripts.a.tier must be", "scripts: {a: {tier: 4}}": "scripts.a.tier must be",
		"scripts: {a: {tier: 0}}": "scripts.a.tier must be", "scripts: {a: {tier: -1, read_only: true}}": "scripts.a.tier must be",
		"[": "line 1",
	} {
		if _, err := ParseSettings([]byte(text), "/"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseHeader(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Description
	}{
		"parameters": {"#!/bin/sh\n# Prints what is full.\n# It asks df.\n#\n# @param mount string required where to " +
			"look\n# @param limit int optional in per cent,\n#   from 1 to 100\n# @param verbose switch\n# @param names " +
			"string[] optional\nset -e\n# @param late string\n", Description{
			Synopsis: "Prints what is full.", Details: "It asks df.", Parameters: []Parameter{
				{Name: "mount", Type: String, Required: true, Description: "where to look"},
				{Name: "limit", Type: Integer, Description: "in per cent, from 1 to 100"},
				{Name: "verbose", Type: Boolean, Switch: true}, {Name: "names", Type: Array, Items: String},
			},
		}},
		"node": {"#!/usr/bin/env node\n// Counts.\n// @param n number\n",
			Description{Synopsis: "Counts.", Parameters: []Parameter{{Name: "n", Type: Number}}}},
		"none": {"#!/bin/sh\n# Does it.\n# @noparams\n", Description{Synopsis: "Does it."}},
		"no word": {"#!/bin/sh\necho\n",
			Description{Note: "The script does not say which parameters it takes; give its arguments as plain words."}},
		"odd names": {"#!/bin/sh\n# @param --x string\n# @param 1a string\n# @param ok thing\n# @param fine string\n",
			Description{
				Parameters: []Parameter{{Name: "fine", Type: String}},
				Note: `The line "@param --x string" of the script is not ` +
					"`@param name type required|optional description`; give its argument as plain words.",
			}},
		"no type": {"#!/bin/sh\n# @param x\n", Description{
			Note: `The line "@param x" of the script is not ` +
				"`@param name type required|optional description`; give its argument as plain words.",
		}},
	} {
		operationtest.Same(t, name, c.want, ParseHeader(c.text), cmpopts.EquateEmpty())
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add("#!/bin/sh\n# @param a string required b\n")
	f.Fuzz(func(_ *testing.T, text string) { _ = ParseHeader(text).Schema() })
}

func TestScriptsOfPowerShellAreReadInEveryEncoding(t *testing.T) {
	text := "<#\n.SYNOPSIS\nGröße\n#>\nparam([Parameter(Mandatory)][ValidateSet('groß','klein')][string]$Name)\n"
	for name, e := range map[string]encoding.Encoding{
		"UTF-8": encoding.Nop, "UTF-8 with a mark": unicode.UTF8BOM, "Windows-1252": charmap.Windows1252,
		"UTF-16 LE": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
		"UTF-16 BE": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"UTF-32 LE": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "UTF-32 BE": utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
	} {
		encoded, err := e.NewEncoder().String(text)
		must.Do(t, err)
		dir := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{defaultFolder + "/size.ps1": encoded})
		found, skipped := discoverAll(DefaultSettings(dir))
		if len(found) != 1 || len(skipped) > 0 {
			t.Fatalf("%s: %v, %v", name, found, skipped)
		}
		want := Description{Synopsis: "Größe",
			Parameters: []Parameter{{Name: "Name", Type: String, Required: true, Values: []string{"groß", "klein"}}}}
		operationtest.Same(t, name, want, found[0].Description)
	}
}

func TestATextThatIsNoneTakesPlainWords(t *testing.T) {
	wide, err := unicode.UTF16(unicode.LittleEndian,
		unicode.IgnoreBOM).NewEncoder().String("param([Parameter(Mandatory)]$Name)")
	must.Do(t, err)
	got, problem := readDescription(PowerShell, []byte(wide))
	_, takesWords := got.Schema()["properties"].(map[string]any)["args"]
	if problem != "" || !takesWords || !strings.Contains(got.Note, "UTF-16 without a byte order mark") ||
		len(got.Parameters) > 0 {
		t.Errorf("%+v, %s", got, problem)
	}
	// ends in the middle, half a pair, no character
	for _, text := range []string{"\xff\xfe\x00", "\xfe\xff\xd8\x00", "\x00\x00\xfe\xff\xff\xff\xff\xff",
		"\xef\xbb\xbf\xff"} {
		decoded, mark := decodeScript([]byte(text))
		if !strings.HasSuffix(decoded, "\ufffd") || mark == "" {
			t.Errorf("%q: %q of %s", text, decoded, mark)
		}
	}
}

package scripts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestScriptsOfPowerShellAreReadInEveryEncoding(t *testing.T) {
	text := "<#\n.SYNOPSIS\nGröße\n#>\nparam([Parameter(Mandatory)][ValidateSet('groß','klein')][string]$Name)\n"
	for name, e := range map[string]encoding.Encoding{
		"UTF-8": encoding.Nop, "UTF-8 with a mark": unicode.UTF8BOM, "Windows-1252": charmap.Windows1252,
		"UTF-16 LE": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
		"UTF-16 BE": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"UTF-32 LE": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "UTF-32 BE": utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
	} {
		encoded, err := e.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		dir := operationtest.WriteExecutables(t, t.TempDir(), map[string]string{defaultFolder + "/size.ps1": encoded})
		found, skipped := discoverAll(DefaultSettings(dir))
		if len(found) != 1 || len(skipped) > 0 {
			t.Fatalf("%s: %v, %v", name, found, skipped)
		}
		want := Description{Synopsis: "Größe",
			Parameters: []Parameter{{Name: "Name", Type: String, Required: true, Values: []string{"groß", "klein"}}}}
		if diff := cmp.Diff(want, found[0].Description); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestATextThatIsNoneTakesPlainWords(t *testing.T) {
	wide, err := unicode.UTF16(unicode.LittleEndian,
		unicode.IgnoreBOM).NewEncoder().String("param([Parameter(Mandatory)]$Name)")
	if err != nil {
		t.Fatal(err)
	}
	got, problem := describe(PowerShell, []byte(wide))
	_, takesWords := got.Schema()["properties"].(map[string]any)["args"]
	if problem != "" || !takesWords || !strings.Contains(got.Note, "UTF-16 without a byte order mark") ||
		len(got.Parameters) > 0 {
		t.Errorf("%+v, %s", got, problem)
	}
	// ends in the middle, half a pair, no character
	for _, text := range []string{"\xff\xfe\x00", "\xfe\xff\xd8\x00", "\x00\x00\xfe\xff\xff\xff\xff\xff",
		"\xef\xbb\xbf\xff"} {
		decoded, mark := decode([]byte(text))
		if !strings.HasSuffix(decoded, "\ufffd") || mark == "" {
			t.Errorf("%q: %q of %s", text, decoded, mark)
		}
	}
}

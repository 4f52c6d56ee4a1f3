package scripts

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told is a parameter in one line: name, type, "!" if it is mandatory, default, set, range or pattern, sets that need
// it, aliases.
func told(p Parameter) string {
	kind := string(p.Type)
	switch {
	case p.Switch:
		kind = "switch"
	case p.Type == Array:
		kind = string(p.Items) + "[]"
	}
	text := strings.TrimSpace(p.Name + " " + kind)
	if p.Required {
		text += "!"
	}
	if p.Default.Known {
		value, _ := json.Marshal(p.Default.Value) // constants always marshal
		text += " = " + string(value)
	}
	if len(p.Values) > 0 {
		text += " of " + strings.Join(p.Values, "|")
	}
	if p.Range.Min != nil && p.Range.Max != nil {
		text += fmt.Sprintf(" from %s to %s", strconv.FormatFloat(*p.Range.Min, 'f', -1, 64),
			strconv.FormatFloat(*p.Range.Max, 'f', -1, 64))
	}
	if p.Pattern.Text != "" {
		text += " like " + p.Pattern.Text
	}
	if len(p.RequiredIn) > 0 {
		text += " needed in " + strings.Join(p.RequiredIn, "|")
	}
	if len(p.Aliases) > 0 {
		text += " alias " + strings.Join(p.Aliases, "|")
	}
	return text
}

// TestParametersOfRealScripts holds what was found in scripts of sillsdev/FieldWorks, dotnet/arcade and
// PowerShell/PowerShell, by path. The blocks are written anew: they have the same parameters, in the forms in which
// those scripts write them.
func TestParametersOfRealScripts(t *testing.T) {
	for path, c := range realParameters() {
		t.Run(path, func(t *testing.T) {
			got := parsePowerShell(c.text)
			var lines []string
			for _, p := range got.Parameters {
				lines = append(lines, told(p))
			}
			if diff := cmp.Diff(strings.Split(c.want, "\n"), lines); diff != "" || got.Note != "" {
				t.Errorf("%s (-want +got):\n%s", got.Note, diff)
			}
		})
	}
}

package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// lineFlags are comments on lines of files.
type lineFlags struct{ after, before []string }

func (f *lineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.after, "line", nil, "comment on a line of a file, as PATH:LINE:TEXT; may be repeated")
	cmd.Flags().StringArrayVar(&f.before, "line-before", nil,
		"comment on a line of a file as it was before the change, as PATH:LINE:TEXT; may be repeated")
}

// comments returns the comments that were given.
func (f *lineFlags) comments() (out []gitprovider.LineComment, err error) {
	for _, given := range f.after {
		if out, err = addLine(out, "--line", given, false); err != nil {
			return nil, err
		}
	}
	for _, given := range f.before {
		if out, err = addLine(out, "--line-before", given, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func addLine(out []gitprovider.LineComment, flag, given string, before bool) ([]gitprovider.LineComment, error) {
	path, rest, _ := strings.Cut(given, ":")
	number, text, _ := strings.Cut(rest, ":")
	line, err := strconv.Atoi(number)
	if path == "" || err != nil || line < 1 || strings.TrimSpace(text) == "" {
		return nil, app.Usage(fmt.Errorf("%s %.200q is not of the form PATH:LINE:TEXT, such as 'checks/disk.md:12:Say "+
			"which disk.'", flag, given))
	}
	return append(out, gitprovider.LineComment{Path: path, Line: line, Before: before, Body: strings.TrimSpace(text)}), nil
}

package content

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

// ownRule finds the tokens that `claudeops token create` makes. Only their hashes are kept, so that the list of our own
// values cannot have them.
const ownRule = `
[[rules]]
id = "claude-ops-token"
description = "A token of the Claude Ops server"
regex = '''cops_[A-Za-z0-9_-]{43}'''
keywords = ["cops_"]
`

// loadRules builds a detector from the rules that come with gitleaks, made fit for text whose author may want to hide
// something. Upstream's exceptions serve people who scan their own code; here they would be switches for the agent:
//
//   - "gitleaks:allow" comments count for nothing;
//   - exceptions and limits by file path are dropped, so that a Kubernetes secret is found in Markdown too;
//   - stop words (1,446 of them, "example" among them, anywhere in a value) are dropped; identifier stands in for them
//     where the rules only guess;
//   - exceptions for a value must match the value whole, and exceptions for a name must begin in the name;
//   - exceptions for a line are dropped.
//
// It silences the library's logger (zerolog, used by nothing else here), since it logs what it finds.
func loadRules() (detector *detect.Detector, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on a broken expression
			detector, err = nil, fmt.Errorf("load the secret rules: %v", p)
		}
	}()
	zerolog.SetGlobalLevel(zerolog.Disabled)
	parser := viper.New() // not the library's own loader, which shares a global one
	parser.SetConfigType("toml")
	if err := parser.ReadConfig(strings.NewReader(config.DefaultConfig + ownRule)); err != nil {
		return nil, fmt.Errorf("load the secret rules: %w", err)
	}
	var rules config.ViperConfig
	if err := parser.Unmarshal(&rules); err != nil {
		return nil, fmt.Errorf("load the secret rules: %w", err)
	}
	harden(&rules)
	translated, err := rules.Translate()
	if err != nil {
		return nil, fmt.Errorf("load the secret rules: %w", err)
	}
	if len(translated.Rules) == 0 {
		return nil, errors.New("load the secret rules: there are none")
	}
	detector = detect.NewDetector(translated)
	detector.IgnoreGitleaksAllow = true
	detector.MaxDecodeDepth = 0 // layersOf decodes
	return detector, nil
}

// harden changes the rules as loadRules says.
func harden(rules *config.ViperConfig) {
	if everywhere := rules.AllowList; everywhere != nil { //nolint:staticcheck // deprecated, and still read
		everywhere.Paths, everywhere.Commits, everywhere.StopWords = nil, nil, nil
		everywhere.Regexes = wholeValue(everywhere.Regexes)
	}
	kept := rules.Rules[:0]
	for _, rule := range rules.Rules {
		if rule.Regex == "" {
			continue // judges the path only
		}
		rule.Path = ""
		exceptions := rule.Allowlists[:0]
		for _, e := range rule.Allowlists {
			byPath := len(e.Paths) > 0 && strings.EqualFold(e.Condition, "and")
			if byPath || e.RegexTarget == "line" || len(e.Regexes) == 0 {
				continue
			}
			e.Paths, e.Commits, e.StopWords = nil, nil, nil
			if e.RegexTarget == "match" {
				e.Regexes = fromName(e.Regexes)
			} else {
				e.Regexes = wholeValue(e.Regexes)
			}
			exceptions = append(exceptions, e)
		}
		rule.Allowlists = exceptions
		kept = append(kept, rule)
	}
	rules.Rules = kept
}

// wholeValue makes expressions match a value from end to end or not at all.
func wholeValue(expressions []string) []string {
	changed := make([]string, 0, len(expressions))
	for _, e := range expressions {
		changed = append(changed, `\A(?:`+e+`)\z`)
	}
	return changed
}

// fromName makes expressions for a whole match ("name = value") begin before the separator, so that the value alone
// cannot satisfy them.
func fromName(expressions []string) []string {
	changed := make([]string, 0, len(expressions))
	for _, e := range expressions {
		changed = append(changed, `\A[^=:>|,]{0,90}?(?:`+e+`)`)
	}
	return changed
}

// Package gitleaks compares our search for secrets with that of gitleaks. It is a module of its own, so that the
// program's go.mod does not carry what the library needs.
package gitleaks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
)

// library is gitleaks' own search, with the rules made fit as Load says.
func library(t testing.TB) *detect.Detector {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // it logs what it finds
	parser := viper.New()
	parser.SetConfigType("toml")
	if err := parser.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		t.Fatal(err)
	}
	var rules config.ViperConfig
	if err := parser.Unmarshal(&rules); err != nil {
		t.Fatal(err)
	}
	everywhere := rules.AllowList //nolint:staticcheck // deprecated, and still what the file has
	everywhere.Paths, everywhere.StopWords = nil, nil
	for i, e := range everywhere.Regexes {
		everywhere.Regexes[i] = secretrules.WholeValue(e)
	}
	kept := rules.Rules[:0]
	for _, r := range rules.Rules {
		if r.Regex == "" {
			continue
		}
		lists := r.Allowlists[:0]
		for _, e := range r.Allowlists {
			if len(e.Paths) > 0 && strings.EqualFold(e.Condition, "and") || e.RegexTarget == "line" || len(e.Regexes) == 0 {
				continue
			}
			for i, x := range e.Regexes {
				e.Regexes[i] = map[bool]func(string) string{true: secretrules.FromName,
					false: secretrules.WholeValue}[e.RegexTarget == "match"](x)
			}
			e.Paths, e.StopWords = nil, nil
			lists = append(lists, e)
		}
		r.Path, r.Allowlists, r.Regex = "", lists, secretrules.WithWiderEnd(r.ID, r.Regex)
		kept = append(kept, r)
	}
	rules.Rules = kept
	translated, err := rules.Translate()
	if err != nil {
		t.Fatal(err)
	}
	d := detect.NewDetector(translated)
	d.IgnoreGitleaksAllow, d.MaxDecodeDepth = true, 0
	return d
}

// sample writes a text that an expression matches.
func sample(re *syntax.Regexp, r *rand.Rand, b *strings.Builder) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			s := string(c)
			if re.Flags&syntax.FoldCase != 0 && r.IntN(2) == 0 {
				s = strings.ToUpper(s)
			}
			b.WriteString(s)
		}
	case syntax.OpCharClass:
		n := len(re.Rune) / 2
		k := r.IntN(n)
		lo, hi := re.Rune[2*k], re.Rune[2*k+1]
		if hi > 0x7e && lo <= 0x7e {
			hi = 0x7e
		}
		b.WriteRune(lo + rune(r.IntN(int(hi-lo)+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(rune(32 + r.IntN(94)))
	case syntax.OpCapture:
		sample(re.Sub[0], r, b)
	case syntax.OpConcat:
		for _, s := range re.Sub {
			sample(s, r, b)
		}
	case syntax.OpAlternate:
		sample(re.Sub[r.IntN(len(re.Sub))], r, b)
	case syntax.OpQuest, syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		lo, hi := 0, 1
		switch re.Op {
		case syntax.OpStar:
			hi = 4
		case syntax.OpPlus:
			lo, hi = 1, 5
		case syntax.OpRepeat:
			lo, hi = re.Min, re.Max
			if hi < 0 {
				hi = lo + 5
			}
		}
		for range lo + r.IntN(hi-lo+1) {
			sample(re.Sub[0], r, b)
		}
	}
}

// findings are those of the library and of this package in a text, in the same form.
func findings(t *testing.T, d *detect.Detector, s *secretrules.Set, text string) (theirs, ours []string) {
	t.Helper()
	for _, f := range d.DetectString(text) {
		theirs = append(theirs, fmt.Sprintf("%s in line %d: %q", f.RuleID, f.StartLine, f.Secret))
	}
	found, err := s.Find(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		ours = append(ours, fmt.Sprintf("%s in line %d: %q", f.Rule, strings.Count(text[:f.Start], "\n"), f.Secret))
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	return theirs, ours
}

// Texts that each rule matches, put together and into prose, have the findings that the library has.
func TestFindsWhatTheLibraryFinds(t *testing.T) {
	t.Parallel()
	d, s := library(t), load(t)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts in each run
	var samples []string
	for _, expression := range s.Expressions() {
		tree, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			var b strings.Builder
			sample(tree, r, &b)
			samples = append(samples, b.String())
		}
	}
	between := []string{"token ", "secret = ", "x", "\n", " key: ", "api_", "\"", "the ", "password ", "é", "🙂", "Größe ",
		"\u212a", "\u017f"}
	ascii := between[:9]
	matches := 0
	for i := range samples {
		words := between
		if i%2 == 0 {
			words = ascii
		}
		var b strings.Builder
		for range 1 + r.IntN(4) {
			for range r.IntN(8) {
				b.WriteString(words[r.IntN(len(words))])
			}
			b.WriteString(samples[(i+r.IntN(3))%len(samples)])
		}
		theirs, ours := findings(t, d, s, b.String())
		matches += len(theirs)
		if !slices.Equal(theirs, ours) {
			t.Errorf("%q\nlibrary: %s\nhere:    %s", b.String(), strings.Join(theirs, "\n  "), strings.Join(ours, "\n  "))
		}
	}
	if matches < len(samples) {
		t.Errorf("%d texts had %d matches: the samples are not what the rules look for", len(samples), matches)
	}
}

func load(t testing.TB) *secretrules.Set {
	t.Helper()
	s, err := secretrules.Load(config.DefaultConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkFind(b *testing.B) {
	const page = "# Disk space\n\nRun `df -h /var` on each node and warn when usage is above 85%.\n\n```sh\n" +
		"kubectl -n kube-system get pods -l app.kubernetes.io/name=traefik -o wide\n" +
		"curl -fsS -H \"Authorization: Bearer $TOKEN\" https://api.example.com/health\n```\n\n" +
		"If the token has expired, see playbooks/rotate-token.md. Größe prüfen ✅.\n\n"
	text := strings.Repeat(page, 64<<10/len(page))
	d, s := library(b), load(b)
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			d.DetectString(text)
		}
	})
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Find(b.Context(), text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The rules that the program embeds are those of the module in go.mod. With UPDATE_GOLDEN they are taken from it.
func TestTheRulesAreThoseOfGitleaks(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "internal", "base", "textscan", "gitleaks", "rules.toml")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(config.DefaultConfig), 0o644); err != nil { // #nosec G306: part of the sources
			t.Fatal(err)
		}
	}
	rules, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(rules) != config.DefaultConfig {
		t.Error("gitleaks/rules.toml is not the one of the module in tools/gitleaks/go.mod; run `make golden`, and look at " +
			"the difference")
	}
}

package textscan_test

import (
	"encoding/base64"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/textscan"
)

func TestACredentialIsRedactedFromWhenItIsLearnt(t *testing.T) {
	const first, later = "ghp_configured-in-the-beginning", "ghs_made-by-the-forge-an-hour-ago"
	s := textscan.NewScanner([]string{first})
	text := "a " + first + " b " + later + " c " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+later))
	if got := s.Redact(text); strings.Contains(got, first) || !strings.Contains(got, later) {
		t.Errorf("before: %q", got)
	}
	forget := s.Learn(later)
	forgetAgain := s.Learn(later)
	forget()
	forget()
	if got := s.Redact(text); strings.Count(got, "[redacted]") != 3 {
		t.Errorf("learnt twice and forgotten once: %q", got)
	}
	found, err := s.Secrets(t.Context(), "body", "see "+later)
	if err != nil || len(found) != 1 || found[0].Rule != textscan.OwnTokenRule {
		t.Errorf("found %+v, %v", found, err)
	}
	forgetAgain()
	if got := s.Redact(text); strings.Contains(got, first) || !strings.Contains(got, later) {
		t.Errorf("after: %q", got)
	}
	s.Learn("short")()
}

func TestCredentialsAreLearntWhileTextsAreRedacted(t *testing.T) {
	s := textscan.NewScanner(nil)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			token := "ghs_token-number-" + strings.Repeat(string(rune('a'+i)), 20)
			forget := s.Learn(token)
			defer forget()
			if got := s.Redact("the token " + token); got != "the token [redacted]" {
				t.Errorf("got %q", got)
			}
		})
	}
	group.Wait()
}

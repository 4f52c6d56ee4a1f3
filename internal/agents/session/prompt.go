package session

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// promptFile returns the name of a tier's prompt.
func promptFile(tier gitprovider.Tier) string {
	switch tier {
	case gitprovider.TierInvestigate:
		return "tier2-investigate.md"
	case gitprovider.TierRemediate:
		return "tier3-remediate.md"
	}
	return "tier1-observe.md"
}

// systemPrompt reads the tier's prompt.
func (s Settings) systemPrompt(tier gitprovider.Tier) ([]byte, error) {
	name := promptFile(tier)
	text, err := fs.ReadFile(s.Claude.Prompts, name)
	if err != nil {
		return nil, fmt.Errorf("the prompt %s cannot be read; look at CLAUDEOPS_PROMPTS_DIR", name)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("the prompt %s is empty; look at CLAUDEOPS_PROMPTS_DIR", name)
	}
	return text, nil
}

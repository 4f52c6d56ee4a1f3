// Package agentdocs holds tests only. They compare what an agent reads (prompts, settings, skill, checks, playbooks,
// manifest) and docs/reference/codes.md with the code that judges what the agent does, so that neither changes alone,
// and hold the links of all pages and the messages that docs/guides/troubleshooting.md quotes.
package agentdocs

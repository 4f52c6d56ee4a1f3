// Package agentdocs holds tests only. They compare the texts for agents (prompts, settings, skill, checks, playbooks,
// manifest) and docs/reference/codes.md with the code that judges the agent's actions, so that neither changes alone.
// They also check the links of all pages and the messages that docs/guides/troubleshooting.md quotes.
package agentdocs
